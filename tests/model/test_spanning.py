"""Spanning trees: the heaviest one, a shallow one among equals, and the rings that its missing edges close."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from kinetree.model.pairs import Edge, heaviest_tree
from strategies import examples

NODES = "abcde"
EDGES = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES), st.integers(0, 3)).filter(lambda e: e[0] != e[1]),
    max_size=8,
)


def connected(edges) -> set[str]:
    """Return the nodes that edges connect to the first node."""
    found = {"a"}
    for _ in NODES:
        found |= {n for e in edges for n in (e.a, e.b) if {e.a, e.b} & found}
    return found


@examples(100)
@given(EDGES)
def test_no_spanning_tree_is_heavier(drawn):
    """Compare the weight of the tree with that of every other one, and follow the rings of the other edges."""
    edges = [Edge(*e) for e in drawn]
    tree = heaviest_tree("a", edges)
    reached = connected(edges)
    assert set(tree.depth) == reached
    weight = sum(edges[k].weight for k in tree.carrier.values())
    trees = (t for t in combinations(edges, len(reached) - 1) if connected(t) == reached)
    assert weight == max(sum(e.weight for e in t) for t in trees)
    for k, edge in enumerate(edges):
        if edge.a not in reached or k in tree.carrier.values():
            continue
        nodes, ring = tree.ring(edge)
        assert (nodes[0], nodes[-1]) == (edge.a, edge.b) and len(set(nodes)) == len(nodes) == len(ring) + 1
        for step, number in enumerate(ring):
            assert {edges[number].a, edges[number].b} == set(nodes[step : step + 2])


def test_equal_edges_give_a_shallow_tree():
    """Reach both ends of a long ring from the root, and cut it in the middle; a second edge is not used."""
    n = 11
    edges = [Edge("a" if k == 0 else f"n{k}", "a" if k == n - 1 else f"n{k + 1}", 1) for k in range(n)]
    tree = heaviest_tree("a", [*edges, Edge("a", "n1", 1)])
    assert max(tree.depth.values()) == 5
    assert set(range(n + 1)) - set(tree.carrier.values()) == {5, n}
