"""One script a claim: each measures us and the peer in the same process run and prints the ratio.

`python -m bench` runs them all, `python -m bench kernels` those whose name holds the word. A script is a
module with ``main() -> list[dict]``, one dict a claim: ``claim``, ``ours``, ``peer``, ``ratio``, ``target``.
"""
