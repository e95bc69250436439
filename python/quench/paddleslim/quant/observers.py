# SPDX-License-Identifier: Apache-2.0
"""What PaddleSlim has in paddleslim.quant.observers."""
from quench.paddleslim.observers import *  # noqa: F401,F403
