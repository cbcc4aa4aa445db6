"""The log that a build writes while it loads, read: what lies where, how large, and what was switched off.

Read are the lines of llama.cpp and ik_llama.cpp from 2024 on, of ``llama-bench -v``, ``llama-server`` and the wheels'
libraries. Both forks print a line for each tensor that an override moves (llama.cpp at debug level), a line for each
buffer, and what a context really uses. Spellings changed through time; a line that is not known says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from harness.domain.load_facts import Buffer, LoadFacts, Notice, Placed, grouped, ranges
from harness.engines.engine import Exit, Order

_MOST_CHARS = 8 * 2**20
_MOST_LINES = 200_000
"""A log that is longer is cut: loading is told at its beginning."""
_LONGEST_LINE = 2000
_MOST_TENSORS = 50_000
_MOST_LAYERS = 4096
_MOST_NOTICES = 24
_MOST_BUFFERS = 256
_LONGEST_NOTICE = 240

_MIB = r"(?P<mib>\d{1,9}(?:[.,]\d{1,6})?) MiB"
"""Some locales write a comma."""
_BUFFER = re.compile(
    r"(?:^|: )\s*(?P<device>[A-Za-z][^:=]{0,60}?)\s+(?:DSV4 \S+ )?(?P<use>model |KV |RS |state |compute |output )?\s*"
    rf"buffer size\s*=\s*{_MIB}"
)
_USES = {"": "weights", "model": "weights", "RS": "state"}
_OVERRIDE = re.compile(r"[Tt]ensor (?P<tensor>\S{1,200}) .{0,80}?buffer type overridd?en to (?P<buffer>\S{1,60})")
_HOME = re.compile(r"layer\s+(?P<layer>\d{1,5}) assigned to device (?P<device>[\w.:-]{1,40})")
_OFFLOADED = re.compile(r"offloaded (?P<some>\d{1,6})/(?P<all>\d{1,6}) layers to GPU")
_LOADING = re.compile(r"loaded meta data with \d+ key-value")
_CONTEXT = re.compile(r"[: ]n_ctx\s+= \d+\s*$")
_CACHE_TYPES = re.compile(
    r"size\s*=\s*[\d.]+ MiB.*?(?:\bK|c\^KV|K-only) \((?P<k>\w{1,16})\)(?:.*?\bV \((?P<v>\w{1,16})\))?"
)
_NODES = re.compile(r"graph nodes\s*= (?P<nodes>\d{1,9})")
_SPLITS = re.compile(r"graph splits\s*= (?P<splits>\d{1,9})(?: \(with bs=\d+\), (?P<one>\d{1,9}))?")
_GRAPH = re.compile(
    r"graph(?: \([^)]*\))?: nodes = (?P<nodes>\d{1,9})(?: / \d+)?, splits = (?P<splits>\d{1,9})(?: / (?P<one>\d{1,9}))?"
)
_REPACKED = re.compile(r"=+ Repacked (?P<count>\d{1,9}) tensors|(?P<one>repack: repack tensor \S+ with)")
_LOAD_MODE = re.compile(r"\(load_mode = (?P<mode>\w{1,20})\)")
_RESOLVED = re.compile(r"Flash Attention (?:was auto, )?(?:not supported, )?(?:set to )?(?P<word>enabled|disabled)\b")
_SETTING = re.compile(r": (?P<name>[a-z_]+(?: er)?)\s*= (?P<value>\S{1,20})\s*$")
_SETTINGS = {
    "flash_attn": "fa",
    "attn_max_b": "amb",
    "fused_moe": "fmoe",
    "grouped er": "ger",
    "mla_attn": "mla",
    "rope_cache": "rcache",
    "graph_reuse": "gr",
}
_BATCHES = {"n_batch": "b", "n_ubatch": "ub"}
"""Cut to the context of each workload: the largest counts."""
_NEGATED = {"fused_up_gate": "no_fug"}
_WORDS = {"enabled": "1", "disabled": "0", "true": "1", "false": "0"}
_MODES = {"mmap": "1", "none": "0"}

_NOTICE = re.compile(
    r"forcing (?:off|k_cache)|not supported|unsupported|fall(?:ing)? ?back|disabl(?:ed|ing)\b|turning (?:\S+ ){0,3}off"
    r"|not compatible|cannot be used with|ignoring|changing (?:MLA|mla|split mode)|retrying without|did not merge"
    r"|[Mm]erged only|requires|is required for|NOT defined|failed to|not implemented|is not active|consider using"
    r"|does not support|do(?:es)? not work|crippled|skipping|not available|missing support",
    re.IGNORECASE,
)
_NO_NOTICE = re.compile(
    r"kv\s+\d+:|(?:control|special|EOG|EOS) token|vocab only|Note: KV overrides|resolving fused|\b(?:srv|slot) "
)
_DULL = re.compile(r"llama_graph_n_input_tensors|create_tensor: loading|llama_model_loader: - ")
"""Beginnings of the lines that are most of a log at debug level, and of no interest."""
_FLAG_RULES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(
            r"flash_attn .*forcing off|disabling flash attention|Flash Attention (?:was auto, )?(?:not supported, )?"
            "set to disabled"
        ),
        "fa",
        "0",
    ),
    (re.compile(r"enabling flash_attn since"), "fa", "1"),
    (re.compile(r"changing MLA from -?\d+ to (\d)"), "mla", ""),
    (re.compile(r"changing mla to (\d)"), "mla", ""),
    (re.compile(r"turning off MLA", re.IGNORECASE), "mla", "0"),
    (re.compile(r"changing split mode to '(\w+)'"), "sm", ""),
    (re.compile(r"turning off merge_qkv"), "mqkv", "0"),
    (re.compile(r"mmap is not (?:supported|available)"), "mmap", "0"),
    (re.compile(r"deferred expert loading (?:disabled|is only supported)"), "defer_experts", "0"),
    (re.compile(r"ignoring requested V-cache"), "ctv", "f16"),
)
_DIGITS = re.compile(r"\d+")
_STAMP = re.compile(r"^\d+\.\d\d\.\d{3}\.\d{3} [A-Z] ")


def told_load(order: Order, ended: Exit, *, beside: bool = False) -> LoadFacts | None:
    """What a process said of loading; ``None`` where it was not to log.

    Args:
        order: What it was asked to do.
        ended: How it ended and what it wrote.
        beside: Whether parts of its log are on standard output: older builds of ik_llama.cpp print some there.
    """
    if not order.logs:
        return None
    return read_load_log(f"{ended.stderr}\n{ended.stdout}" if beside else ended.stderr)


def read_load_log(text: str) -> LoadFacts:
    """Read a log. Never raises; bounded in time and memory whatever the log is.

    Args:
        text: Standard error of a process, from its beginning.
    """
    reading = _Reading()
    read = 0
    for number, (line, end) in enumerate(_lines(text), 1):
        reading.line(number, line)
        read = end
    return reading.facts(unread=read < len(text))


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """The lines of the part that is read, each cut to what a line of interest can have, and where the next begins."""
    start, end_of_all = 0, min(len(text), _MOST_CHARS)
    for _ in range(_MOST_LINES):
        if start >= end_of_all:
            return
        end = text.find("\n", start, end_of_all)
        end = end_of_all if end < 0 else end
        yield text[start : min(end, start + _LONGEST_LINE)], end + 1
        start = end + 1


class _Reading:
    """A log on its way to its facts."""

    def __init__(self) -> None:
        self._weights: dict[str, float] = {}
        self._loaded: dict[str, float] = {}
        self._context: dict[tuple[str, str], float] = {}
        self._contexts: dict[tuple[str, str], float] = {}
        self._overrides: dict[str, str] = {}
        self._homes: dict[int, str] = {}
        self._settings: dict[str, str] = {}
        self._notices: dict[str, Notice] = {}
        self._offloaded: tuple[int, int] | None = None
        self._graph: dict[str, int] = {}
        self._repacked = self._repacking = 0
        self._told: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], None]], ...] = (
            (_BUFFER, self._buffer),
            (_OVERRIDE, self._override),
            (_HOME, self._home),
            (_OFFLOADED, self._layers),
            (_LOADING, lambda _: self._end_load()),
            (_CONTEXT, lambda _: self._end_context()),
            (_CACHE_TYPES, self._cache_types),
            (_NODES, self._sizes),
            (_SPLITS, self._sizes),
            (_GRAPH, self._sizes),
            (_REPACKED, self._repack),
            (_LOAD_MODE, self._mode),
            (_RESOLVED, self._resolved),
            (_SETTING, self._setting),
        )

    def line(self, number: int, line: str) -> None:
        """Take one line."""
        if _DULL.match(line):
            return
        for pattern, take in self._told:
            if found := pattern.search(line):
                take(found)
                break
        if _NOTICE.search(line) and not _NO_NOTICE.search(line):
            self._notice(number, _STAMP.sub("", line.strip())[:_LONGEST_NOTICE])

    def facts(self, *, unread: bool) -> LoadFacts:
        """What was read."""
        self._end_load()
        self._end_context()
        weights = [Buffer("weights", device, round(mib, 2)) for device, mib in self._weights.items()]
        rest = [Buffer(use, device, round(mib, 2)) for (use, device), mib in self._contexts.items()]
        homes: dict[str, list[int]] = {}
        for layer, device in self._homes.items():
            homes.setdefault(device, []).append(layer)
        one = self._graph.get("one")
        return LoadFacts(
            buffers=(*weights, *rest),
            overrides=grouped(self._overrides),
            homes=tuple(Placed(ranges(layers), (), device) for device, layers in homes.items()),
            offloaded=self._offloaded,
            settings=tuple(sorted(self._settings.items())),
            nodes=self._graph.get("nodes"),
            splits=self._graph.get("splits"),
            splits_of_one=None if one == self._graph.get("splits") else one,
            repacked=self._repacked,
            notices=tuple(self._notices.values()),
            unread=unread,
        )

    def _buffer(self, found: re.Match[str]) -> None:
        said = (found["use"] or "").strip()
        use, device, mib = _USES.get(said, said), found["device"], float(found["mib"].replace(",", "."))
        if use == "weights":
            if device in self._loaded or len(self._loaded) < _MOST_BUFFERS:
                self._loaded[device] = self._loaded.get(device, 0.0) + mib
        elif (use, device) in self._context or len(self._context) < _MOST_BUFFERS:
            # Caches of a context are several, and add up; a work buffer that is named again was made anew.
            before = self._context.get((use, device), 0.0)
            self._context[use, device] = before + mib if use in ("KV", "state") else max(before, mib)

    def _end_load(self) -> None:
        """The next model begins: of several loads the largest counts."""
        for device, mib in self._loaded.items():
            self._weights[device] = max(self._weights.get(device, 0.0), mib)
        self._loaded = {}
        self._repacked, self._repacking = max(self._repacked, self._repacking), 0
        self._end_context()

    def _end_context(self) -> None:
        for key, mib in self._context.items():
            self._contexts[key] = max(self._contexts.get(key, 0.0), mib)
        self._context = {}

    def _override(self, found: re.Match[str]) -> None:
        if len(self._overrides) < _MOST_TENSORS:
            self._overrides[found["tensor"]] = found["buffer"].rstrip(",.;")

    def _home(self, found: re.Match[str]) -> None:
        if int(found["layer"]) < _MOST_LAYERS:
            self._homes[int(found["layer"])] = found["device"]

    def _layers(self, found: re.Match[str]) -> None:
        self._offloaded = (int(found["some"]), int(found["all"]))

    def _cache_types(self, found: re.Match[str]) -> None:
        self._settings.update({flag: found[part] for flag, part in (("ctk", "k"), ("ctv", "v")) if found[part]})

    def _sizes(self, found: re.Match[str]) -> None:
        for name, value in found.groupdict().items():
            if value is not None:
                self._graph[name] = max(self._graph.get(name, 0), int(value))

    def _repack(self, found: re.Match[str]) -> None:
        self._repacking += 1 if found["one"] else int(found["count"])

    def _mode(self, found: re.Match[str]) -> None:
        if found["mode"] in _MODES:
            self._settings["mmap"] = _MODES[found["mode"]]

    def _resolved(self, found: re.Match[str]) -> None:
        self._settings["fa"] = _WORDS[found["word"]]

    def _setting(self, found: re.Match[str]) -> None:
        name, value = found["name"].strip(), _WORDS.get(found["value"], found["value"])
        if name in _SETTINGS:
            self._settings[_SETTINGS[name]] = value
        elif name in _BATCHES and value.isdecimal():
            flag, before = _BATCHES[name], int(self._settings.get(_BATCHES[name], 0))
            self._settings[flag] = str(max(before, int(value)))
        elif name in _NEGATED and value in ("0", "1"):
            self._settings[_NEGATED[name]] = str(1 - int(value))

    def _notice(self, number: int, line: str) -> None:
        kind = _DIGITS.sub("#", line)
        if kind in self._notices or len(self._notices) >= _MOST_NOTICES:
            return
        self._notices[kind] = Notice(line, number, *_flag_of(line))


def _flag_of(line: str) -> tuple[str, str]:
    """The flag that a line is about, and what it says that the flag amounts to."""
    for pattern, flag, value in _FLAG_RULES:
        if found := pattern.search(line):
            return flag, value or found[1]
    return "", ""
