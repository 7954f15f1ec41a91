r"""Conversion of objects to plain JSON types and back, exactly.

An object is stored as its class and the arguments of its constructor, which is called
to restore it. Each argument must therefore be an attribute of the same name, as for
dataclasses; other classes have a method ``constructor_arguments``. Only subclasses of a
base that is marked ``tags.storable`` can be stored. A record names module and class,
``my_sets:Ball``. Classes of this package are named by the package only,
``botorch_drbo:TotalVariation``, so that they may move between modules.
"""

from botorch_drbo.codec.objects import decode, encode, register

__all__ = ["decode", "encode", "register"]
