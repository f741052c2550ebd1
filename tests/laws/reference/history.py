"""Decoding with hypothesised history (m, p): online paper, section 3.2; and beam search, its comparison.

A chart cell is the last m labels; labels further back are read off the cell's own best path. The score comes
token by token from `local(t, path, y)`: what label y at t adds after the labels `path` of tokens 0..t-1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from .chain import Array, Path, Scores, edges

Local = Callable[[int, Path, int], float]


def decode(local: Local, T: int, L: int, m: int, k: int = 1) -> list[tuple[float, Path]]:
    """The k best paths found with cells of m labels; exact when nothing in `local` looks back further than m.

    Among equals the lower dropped label wins, then its better prefix; at the end the lower last label.
    """
    cells: dict[Path, list[tuple[float, Path]]] = {(): [(0.0, ())]}
    for t in range(T):
        new: dict[Path, list[tuple[float, Path]]] = {}
        for y in range(L):
            for key in sorted(cells, key=lambda c: c[::-1]):
                reach = [(h + local(t, p, y), (*p, y)) for h, p in cells[key]]
                new.setdefault((*key, y)[-m:], []).extend(reach)
        cells = {key: _best(found, k) for key, found in new.items()}
    final = [entry for key in sorted(cells, key=lambda c: c[::-1]) for entry in cells[key]]
    return _best(final, k)


def beam(local: Local, T: int, L: int, width: int) -> list[tuple[float, Path]]:
    """The `width` best whole prefixes at each token, whatever their last labels."""
    kept: list[tuple[float, Path]] = [(0.0, ())]
    for t in range(T):
        kept = _best([(h + local(t, p, y), (*p, y)) for y in range(L) for h, p in kept], width)
    return kept


def _best(paths: list[tuple[float, Path]], k: int) -> list[tuple[float, Path]]:
    return sorted(paths, key=lambda hp: -hp[0])[:k]  # stable: equals keep their order


def total(local: Local, path: Path) -> float:
    """The score of a whole path."""
    return sum(local(t, path[:t], y) for t, y in enumerate(path))


def enumerate_best(local: Local, T: int, L: int) -> float:
    """The best score over all L**T paths."""
    return max(total(local, p) for p in product(range(L), repeat=T))


def local_score(
    s: Scores,
    far: Mapping[int, Array] | None = None,
    repeated: Array | None = None,
    words: Sequence[str] = (),
    earlier: Sequence[tuple[str, int]] = (),
) -> Local:
    """First-order scores, plus the features on history.

    far[q] [L, L]: weight of (y_{t-q}, y_t) for q = 2..p. repeated [L, L]: weight of (y_u, y_t) for each
    earlier token u of the document with the same word; inside the sentence its label comes from the path, and
    ``earlier`` holds the (word, decoded label) of the sentences before this one.
    """
    edge, T = edges(s), len(s.node)

    def local(t: int, path: Path, y: int) -> float:
        h = s.node[t, y] + (edge[t, path[-1], y] if path else s.start[y]) + (s.end[y] if t == T - 1 else 0.0)
        h += sum(weight[path[t - q], y] for q, weight in (far or {}).items() if t >= q)
        if repeated is not None:
            h += sum(repeated[label, y] for word, label in earlier if word == words[t])
            h += sum(repeated[path[u], y] for u in range(t) if words[u] == words[t])
        return float(h)

    return local
