r"""Objects as plain JSON types and back, exactly: one way for all that is stored.

An object is stored as its class and the arguments of its constructor, which is run when
it is restored. So each argument has to be an attribute of the same name, as it is of
dataclasses; a class where it is not has a method ``constructor_arguments``. Only
classes below a base that is marked ``tags.storable`` can be stored, and none that
another class is mistaken for: a record names module and class, ``my_sets:Ball``. Our
own are named by the package alone, ``botorch_drbo:TotalVariation``, so that a class may
move between modules.
"""

from botorch_drbo.codec.objects import decode, encode
from botorch_drbo.codec.tags import register

__all__ = ["decode", "encode", "register"]
