"""The version of this package: that of the attache that it comes with."""

__version__ = "0.1.0"
