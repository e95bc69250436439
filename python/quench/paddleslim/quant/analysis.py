# SPDX-License-Identifier: Apache-2.0
"""What PaddleSlim 2.5 has in paddleslim.quant.analysis."""
from quench.paddleslim import Analysis, AnalysisPTQ  # noqa: F401

AnalysisQuant = AnalysisPTQ
