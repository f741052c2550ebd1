"""Ratios against real peers, measured side by side in one run.

python -m benchmarks [--quick] [names...]
"""
