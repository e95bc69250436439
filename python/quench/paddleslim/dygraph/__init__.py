# SPDX-License-Identifier: Apache-2.0
"""What PaddleSlim has in paddleslim.dygraph of quantising."""
from quench.paddleslim.dygraph import quant  # noqa: F401
