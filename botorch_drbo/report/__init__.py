"""One HTML page for decision makers: ``write_report``.

matplotlib and pandas come with the extra ``cli``. ``import botorch_drbo`` does not
import this package.
"""

from botorch_drbo.report.page import write_report

__all__ = ["write_report"]
