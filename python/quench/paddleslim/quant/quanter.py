# SPDX-License-Identifier: Apache-2.0
"""What PaddleSlim has in paddleslim.quant.quanter of quantising after training."""
from quench.paddleslim import (  # noqa: F401
    quant_post_dynamic, quant_post_only_weight, quant_post_static)
