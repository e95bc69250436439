# SPDX-License-Identifier: Apache-2.0
"""Shows how far a job has come, by tqdm where there is one."""
import sys


def _tqdm():
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _watched():
    """Whether somebody looks: a terminal, or a notebook."""
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())


class _Bars:
    """One bar for each phase."""

    def __init__(self, tqdm):
        self._tqdm = tqdm
        self._phase = None
        self._bar = None

    def __call__(self, phase, done, total):
        if phase != self._phase or done < self._bar.n:  # or another round of the same
            self.close()
            self._phase = phase
            self._bar = self._tqdm(desc=phase, total=total or None, leave=False)
        if total and total != self._bar.total:  # a round of more
            self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self):
        if self._bar is not None:
            self._bar.close()
        self._bar = self._phase = None


class _Called:
    """A function of the user's own."""

    def __init__(self, function):
        self._function = function

    def __call__(self, phase, done, total):
        self._function(phase, done, total)

    def close(self):
        pass


def bar(progress):
    """What a job tells of its progress, or None."""
    if callable(progress):
        return _Called(progress)
    if progress is False or progress is None and not _watched():
        return None
    tqdm = _tqdm()
    return tqdm and _Bars(tqdm)
