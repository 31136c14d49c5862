"""Which points of a long campaign a run takes; the same rule as campaign.h."""
import os

LONG = os.environ.get("CAIRN_TEST") == "long"


def taken(point, one_in):
    """Whether to take point number `point`: all under CAIRN_TEST=long, else one in `one_in`, spread evenly."""
    if LONG or one_in <= 1:
        return True
    mixed = ((point + 1) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    return (mixed >> 32) % one_in == 0
