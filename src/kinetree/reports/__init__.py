"""Load reports: forces, torques, powers and bearing loads of a run, and motors that fit them."""

from .catalogue import Catalogue, read_catalogue
from .report import LoadReport, load_report

__all__ = ["Catalogue", "LoadReport", "load_report", "read_catalogue"]
