"""What looks like a secret by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.builds.recipe_file import read_recipe
from harness.domain.errors import BadInput
from harness.domain.secrets import is_secret_name, secret_in_address
from harness.planning.load import load_matrix

MARK = "S3CR3T"


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "GITHUB_TOKEN", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "X-Amz-Signature", "sig", "LLAMA_API_KEY"],
)
def test_secrets_are_known_by_their_names(name: str) -> None:
    """Of variables and of parts of an address alike."""
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["LLAMA_ARG_N_TOKENS", "TOKENIZERS_PARALLELISM", "GGML_CUDA_AUTHOR", "design", "PATH"])
def test_other_names_are_none(name: str) -> None:
    """Numbers of tokens are what engines are about."""
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("address", "is_secret"),
    [
        ("https://example.org/x.git", False),
        ("ssh://git@example.org/x.git", False),
        ("git@example.org:x.git", False),
        ("/a/folder", False),
        ("https://[::1/x", False),
        (f"ssh://git:{MARK}@example.org/x.git", True),
        (f"https://{MARK}@example.org/x.git", True),
        (f"https://example.org/x?access_token={MARK}", True),
    ],
)
def test_addresses_with_a_secret(address: str, is_secret: bool) -> None:
    """What is said of one does not repeat it."""
    told = secret_in_address(address)
    assert bool(told) is is_secret
    assert MARK not in told


@pytest.mark.parametrize(
    "more",
    [
        f'[environment]\nHF_TOKEN = "{MARK}"\n',
        f'[models.other]\nurl = "https://me:{MARK}@example.org/x.gguf"\nsha256 = "{"0" * 64}"\n',
        f'[models.other]\nurl = "https://example.org/x.gguf?token={MARK}"\nsha256 = "{"0" * 64}"\n',
        f'[builds.mine.source]\nrepository = "https://{MARK}@example.org/x.git"\n',
    ],
)
def test_a_matrix_with_a_secret_is_refused_without_it(more: str, tmp_path: Path) -> None:
    """It would stand in the journal, and from there in every report."""
    text = 'name = "m"\n[builds.mine]\nfork = "llama.cpp"\npath = "x"\n[models.tiny]\ncard = "tiny-moe"\n'
    file = tmp_path / "m.toml"
    file.write_text(f"{text}{more}[[workloads]]\npp = 8\n")
    with pytest.raises(BadInput, match="every report") as refused:
        load_matrix(file)
    assert MARK not in f"{refused.value} {refused.value.as_json()}"


@pytest.mark.parametrize(
    ("repository", "more"),
    [
        (f"https://me:{MARK}@example.org/x.git", ""),
        ("https://example.org/x.git", f'[environment]\nSCCACHE_TOKEN = "{MARK}"\n'),
    ],
)
def test_a_recipe_with_a_secret_is_refused_without_it(repository: str, more: str, tmp_path: Path) -> None:
    """As of a matrix; git would also show it to whoever lists the host's processes."""
    file = tmp_path / "recipe.toml"
    file.write_text(f'name = "r"\nfork = "llama.cpp"\nrepository = "{repository}"\nbuild = ["make"]\n{more}')
    with pytest.raises(BadInput, match="every report") as refused:
        read_recipe(file)
    assert MARK not in str(refused.value)
