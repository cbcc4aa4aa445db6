"""What calibrations found of the outputs of a job's model, put into the job before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.domain.tolerance import ContrastClass, Tolerance
from harness.judging.outputs_allowed import backend_of, contrast_class
from harness.judging.tolerances import largest
from harness.running.model_content import content_of
from harness.running.tolerance_file import Found, NodeTolerances, ToleranceFile


class KnownTolerances:
    """Answers from a file of known tolerances.

    Args:
        file: The file, read.
        node: The node that jobs will run on; ``None``: any known one of a job's class.
    """

    def __init__(self, file: ToleranceFile, node: NodeFacts | None) -> None:
        self._file = file
        self._node = node

    def informed(self, job: Job) -> Job:
        """The job with what is known of its outputs; of several nodes the most that is tolerated on any."""
        if job.outputs is None or not self._file.nodes:
            return job
        by_node = [_of_job(job, node) for node in self._nodes(job)]
        return replace(job, tolerances=tuple(_widest(by_node))) if by_node else job

    def _nodes(self, job: Job) -> list[NodeTolerances]:
        if self._node is None:
            return [node for node in self._file.nodes.values() if not job.node_class.unmet(node.facts)]
        known = self._file.nodes.get(self._node.fingerprint)
        return [known] if known else []


def _of_job(job: Job, node: NodeTolerances) -> dict[ContrastClass, Found]:
    """What was found on a node for the contrasts of a job."""
    reference, *others = job.arms
    content = content_of(reference.model)
    found: dict[ContrastClass, Found] = {}
    for other in others:
        contrast = contrast_class(reference, other, node.facts)
        backends = tuple(sorted({backend_of(arm, node.facts) for arm in (reference, other)}))
        known = next((each for each in node.found if each.place == (content, contrast, backends)), None)
        if known is not None and other.model == reference.model:
            found[contrast] = known
    return found


def _widest(by_node: list[dict[ContrastClass, Found]]) -> Iterable[Tolerance]:
    """Of each class the most that is tolerated, where every node that may be meant knows it."""
    for contrast in dict.fromkeys(contrast for found in by_node for contrast in found):
        known = [found[contrast] for found in by_node if contrast in found]
        figures = largest(each.tolerated for each in known)
        if figures is not None and len(known) == len(by_node):
            day = f"{max(each.when for each in known):%Y-%m-%d}"
            fewest = min(each.positions for each in known)
            decoded = min((each.decoded for each in known if each.decoded is not None), default=None)
            yield Tolerance(contrast, figures, f"calibration of {day}", fewest, decoded)
