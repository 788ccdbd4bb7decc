"""The table of families. Task ids depend on a family's position, so positions never change."""

from trace_gym.programs.builtin.families import (
    arithmetic,
    bits,
    classes,
    closures,
    dictionaries,
    dynamic,
    exceptions,
    generators,
    lists,
    machines,
    matrices,
    recursion,
    simulations,
    sorting,
    stdin,
    strings,
)
from trace_gym.programs.builtin.writer import Family

FAMILIES: tuple[Family, ...] = (
    arithmetic.FAMILY,
    strings.FAMILY,
    lists.FAMILY,
    dictionaries.FAMILY,
    recursion.FAMILY,
    closures.FAMILY,
    classes.FAMILY,
    generators.FAMILY,
    exceptions.FAMILY,
    bits.FAMILY,
    sorting.FAMILY,
    stdin.FAMILY,
    dynamic.FAMILY,
    matrices.FAMILY,
    machines.FAMILY,
    simulations.FAMILY,
)
