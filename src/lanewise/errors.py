"""`Error`, which every error raised on purpose derives from, and those that several modules raise.

A message names the thing, the value received, what is allowed and the next step. An error that one module or
package alone raises is defined there: `display.InvalidTable`, `figures.InvalidDrawing`.
"""


class Error(Exception):
    """Base class of all errors raised by lanewise."""


class InvalidAccess(Error):
    """An access is malformed: wrong number of lanes, not integers, negative, or an impossible mask."""


class Misaligned(InvalidAccess):
    """An active lane's byte address is not a multiple of the access width, which the hardware refuses."""


class UnknownInstruction(Error):
    """An instruction name that is not in `lanewise.instructions`."""


class UnknownMachine(Error):
    """A GPU name or compute capability that is not in `lanewise.machine`."""


class InvalidLaunch(Error):
    """A launch shape or resource request that the machine cannot run."""


class NotModelled(Error):
    """The instruction exists, but nobody has settled what it costs, so no number is given."""


class InvalidLayout(Error):
    """A layout whose shape and stride do not fit, or an operation that this layout does not have."""


class InvalidSwizzle(Error):
    """A swizzle that is no permutation, has parameters out of range, or starts off its alignment."""


class UnknownRecord(Error):
    """A recorded measurement, or a counter of one, that is not in the package."""


class Unfit(Error):
    """This machine cannot measure or profile: a GPU, a driver, a tool or a permission is missing."""
