"""Tensor types of GGUF files in both forks: how many values a block holds and how many bytes it takes.

Source of the figures: ``ggml_blck_size``, ``ggml_type_size`` and ``ggml_row_size`` asked of ik_llama.cpp 55d3c05 (the
wheel ik-llama-cpp-python 0.1.5), and the type table of gguf 0.19 for what only mainline has. Types that never reach a
file (activations such as ``q8_1``) are left out, so that meeting one is an error.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorType:
    """How one tensor type is laid out.

    Attributes:
        code: The number in the file.
        name: Upper-case name as the tools print it.
        block: Values in a block; rows are whole blocks.
        block_bytes: Bytes of a block.
        row_bytes: Extra bytes at the start of each row (ik's ``*_KS`` and ``*_KT`` keep a scale there).
    """

    code: int
    name: str
    block: int
    block_bytes: int
    row_bytes: int = 0

    def nbytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a tensor.

        Args:
            shape: Dimensions in ggml order: the row length first.

        Raises:
            ValueError: The row length is not a whole number of blocks.
        """
        columns = shape[0] if shape else 1
        if columns % self.block:
            raise ValueError(f"rows of {columns} values are not whole {self.name} blocks of {self.block}")
        rows = 1
        for extent in shape[1:]:
            rows *= extent
        return rows * (columns // self.block * self.block_bytes + self.row_bytes)


_PLAIN = (
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (30, "BF16", 1, 2),
)
_BOTH_FORKS = (
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (29, "IQ1_M", 256, 56),
    (39, "MXFP4", 32, 17),
    (41, "Q1_0", 128, 18),
)
_MAINLINE_ONLY = ((34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66), (40, "NVFP4", 64, 36))
_IK_ONLY = (
    (133, "Q6_0", 32, 26, 0),
    (134, "IQ1_BN", 64, 13, 2),
    (135, "IQ2_BN", 64, 16, 4),
    (137, "IQ2_K", 256, 76, 0),
    (138, "IQ3_K", 256, 110, 0),
    (139, "IQ4_K", 256, 144, 0),
    (140, "IQ5_K", 256, 176, 0),
    (141, "IQ6_K", 256, 212, 0),
    (144, "IQ4_KS", 256, 136, 4),
    (145, "IQ2_KS", 256, 70, 2),
    (146, "IQ4_KSS", 256, 128, 4),
    (151, "Q8_KV", 32, 32, 8),
    (152, "IQ5_KS", 256, 168, 4),
    (153, "IQ2_KT", 256, 68, 4),
    (154, "IQ3_KT", 256, 100, 4),
    (155, "IQ4_KT", 256, 128, 4),
    (156, "IQ3_KS", 256, 102, 2),
    (157, "IQ2_KL", 256, 86, 2),
    (158, "IQ1_KT", 256, 56, 4),
)
_IK_REPACKED = (
    (202, "Q4_0_R8", 32, 18, 0),
    (206, "Q5_0_R4", 32, 22, 0),
    (208, "Q8_0_R8", 32, 34, 0),
    (210, "Q2_K_R4", 256, 84, 0),
    (211, "Q3_K_R4", 256, 110, 0),
    (212, "Q4_K_R4", 256, 144, 0),
    (213, "Q5_K_R4", 256, 176, 0),
    (214, "Q6_K_R4", 256, 210, 0),
    (216, "IQ2_XXS_R4", 256, 66, 0),
    (217, "IQ2_XS_R4", 256, 74, 0),
    (218, "IQ3_XXS_R4", 256, 98, 0),
    (219, "IQ1_S_R4", 32, 6, 2),
    (220, "IQ4_NL_R4", 32, 18, 0),
    (221, "IQ3_S_R4", 256, 110, 0),
    (222, "IQ2_S_R4", 256, 82, 0),
    (223, "IQ4_XS_R8", 256, 136, 0),
    (229, "IQ1_M_R4", 32, 7, 2),
    (230, "BF16_R16", 1, 2, 0),
    (233, "Q6_0_R4", 32, 26, 0),
    (335, "IQ2_BN_R4", 64, 16, 4),
    (337, "IQ2_K_R4", 256, 76, 0),
    (338, "IQ3_K_R4", 256, 110, 0),
    (339, "IQ4_K_R4", 256, 144, 0),
    (340, "IQ5_K_R4", 256, 176, 0),
    (344, "IQ4_KS_R4", 256, 136, 4),
    (352, "IQ5_KS_R4", 256, 168, 4),
    (398, "Q8_KV_R8", 32, 32, 4),
    (399, "Q8_K_R8", 256, 258, 0),
)

TYPES_BY_CODE: dict[int, TensorType] = {
    row[0]: TensorType(*row) for row in (*_PLAIN, *_BOTH_FORKS, *_MAINLINE_ONLY, *_IK_ONLY, *_IK_REPACKED)
}
TYPES_BY_NAME: dict[str, TensorType] = {kind.name: kind for kind in TYPES_BY_CODE.values()}
