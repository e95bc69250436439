# SPDX-License-Identifier: Apache-2.0
"""What PaddleSlim has in paddleslim.quant."""
from quench.paddleslim import (  # noqa: F401
    Analysis, AnalysisPTQ, AnalysisQAT, PTQ, QuantConfig, observers, quant_post, quant_post_dynamic,
    quant_post_only_weight, quant_post_static)
