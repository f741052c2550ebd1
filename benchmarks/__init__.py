"""Speed and accuracy compared with other taggers, measured alternately in one run.

python -m benchmarks [--quick] [names...]
"""
