# SPDX-License-Identifier: Apache-2.0
"""What PaddleSlim has in paddleslim.quant.analysis_qat."""
from quench.paddleslim import AnalysisQAT  # noqa: F401
