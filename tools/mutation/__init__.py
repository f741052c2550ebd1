"""How many small faults the tests notice: a sample of mutants of the package and of the core, all in one build.

Every mutant of a sample is written into a copy of the tree behind a switch, so that one build serves all of them; a run
of the suite with every switch off tells which tests reach which mutant, and these alone are run with it on.

    make mutants ARGS="--sample 300 --seed 1"
"""
