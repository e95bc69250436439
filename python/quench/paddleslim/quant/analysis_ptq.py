# SPDX-License-Identifier: Apache-2.0
"""What PaddleSlim has in paddleslim.quant.analysis_ptq."""
from quench.paddleslim import AnalysisPTQ  # noqa: F401
