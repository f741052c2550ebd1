"""Mutation testing: the share of small faults in the package and the core that the tests detect.

All mutants of a sample are written into a copy of the tree behind switches, so that one build serves all of them. A run
of the test suite with all switches off records which tests reach which mutant, and only these tests run with it on.

    make mutants ARGS="--sample 300 --seed 1"
"""
