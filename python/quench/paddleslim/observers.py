# SPDX-License-Identifier: Apache-2.0
"""PaddleSlim's observers."""
from quench._quench.paddleslim import (  # noqa: F401
    AbsMaxChannelWiseWeightObserver, AbsmaxObserver, AVGObserver, EMDObserver, HistObserver,
    KLObserver, MSEChannelWiseWeightObserver, MSEObserver, Observer)
