# SPDX-License-Identifier: Apache-2.0
"""What PaddleSlim has in paddleslim.dygraph.quant."""
from quench.paddleslim import PTQ, QAT  # noqa: F401
