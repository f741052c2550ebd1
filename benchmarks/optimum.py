"""Number of features and final objective compared with those of CRFsuite, which has the same optimum."""

from __future__ import annotations

from . import ours
from .harness import Context, Result, seconds
from .workloads import PEER, workload

TOLERANCE = 1e-5  # relative


def run(context: Context) -> Result:
    """Train to convergence on the objective of CRFsuite: l2=1.0, observed features only, no start/end."""
    result = Result("optimum", "Same optimum as CRFsuite (l2=1.0, observed features, no start/end)")
    for name in context.workloads:
        peer = PEER[name]
        X, y = workload(name)
        tagger = ours.crf(n_jobs=max(context.threads), max_iter=1000)
        wall = seconds(lambda X=X, y=y, tagger=tagger: tagger.fit(X, y))
        gap = tagger.objective_ / peer.loss - 1
        cells = {
            "features": f"{tagger.n_features_:,}",
            "CRFsuite": f"{peer.features:,}",
            "objective": f"{tagger.objective_:.2f}",
            "CRFsuite's": f"{peer.loss:.2f}",
            "relative gap": f"{gap:+.1e}",
            "iterations": str(len(tagger.history_)),
            "seconds": f"{wall:.1f}",
        }
        same = tagger.n_features_ == peer.features and gap <= TOLERANCE
        result.add(name, cells, f"same features, gap <= {TOLERANCE:g}", same)
        result.raw[name] = {"objective": tagger.objective_, "history": tagger.history_, "seconds": wall}
    return result
