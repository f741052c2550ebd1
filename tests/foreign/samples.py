"""Small models of other programs, written out by their formats' descriptions, and the numbers those programs gave."""

from __future__ import annotations

import struct

#: Rows of a file that CRFsuite wrote, by where they stand: labels X Y, attributes a b, 4,484 bytes.
LCRF_SIZE = 4484
LCRF_ROWS = {
    0x00000: "6c43 5246 8411 0000 464f 4d43 6400 0000 0000 0000 0200 0000 0200 0000 3000 0000",
    0x00020: "8c00 0000 e008 0000 3411 0000 6011 0000",
    0x00030: "4645 4154 5c00 0000 0400 0000",
    0x0003C: "0000 0000 0000 0000 0000 0000 092b 5d0c f37f e43f",
    0x00050: "0000 0000 0100 0000 0100 0000 082b 5d0c f37f e43f",
    0x00064: "0100 0000 0000 0000 0100 0000 81aa 5fa5 7850 d73f",
    0x00078: "0100 0000 0100 0000 0000 0000 80aa 5fa5 7850 d73f",
    0x0008C: "4351 4442 5408 0000 0000 0000 7153 4462 0200 0000 4c08 0000",
    0x0065C: "2c08 0000 0200 0000",
    0x00814: "3c08 0000 0200 0000",
    0x008A4: "0000 0000 0200 0000 5800",
    0x008AE: "0100 0000 0200 0000 5900",
    0x008B8: "0000 0000 0000 0000 b729 d8a5 1808 0000",
    0x008C8: "0000 0000 0000 0000 eef1 2528 2208 0000",
    0x008D8: "1808 0000 2208 0000",
    0x01134: "4c46 5246 2c00 0000 0400 0000",
    0x01140: "5011 0000 5811 0000 0000 0000 0000 0000",
    0x01150: "0100 0000 0200 0000 0100 0000 0300 0000",
    0x01160: "4146 5246 2400 0000 0200 0000 7411 0000 7c11 0000",
    0x01174: "0100 0000 0000 0000 0100 0000 0100 0000",
}
#: P(X | a) of it, as the original has it.
LCRF_PROBABILITY = 0.6548933332508398

#: Two labels, three observations of u and the label pair; a pattern of each kind.
WAPITI = b"""#mdl#2#9
#rdr#3/1/0
11:u00:%x[0,0],
12:u01:%X[-1,1],
1:b,
#qrk#2
1:N,
1:V,
#qrk#5
9:u00:sheep,
1:b,
8:u01:_x-1,
10:u00:na\xc3\xafve,
6:u01:dt,
0=0x1p-1
1=-0x1.8p+0
2=0x1.279a2e465142p-4
3=0x1p+0
5=-0x1.4p-3
6=0x1p-2
8=0x1p+1
9=0x1.999999999999ap-4
11=-0x1p-3
"""
#: The weights of the observations above by index: sheep 0-1, b 2-5, _x-1 6-7, naive 8-9, dt 10-11.
WAPITI_NODE = {
    ("u00:sheep", "N"): 0.5,
    ("u00:sheep", "V"): -1.5,
    ("u01:_x-1", "N"): 0.25,
    ("u00:naïve", "N"): 2.0,
    ("u00:naïve", "V"): 0.1,
    ("u01:dt", "V"): -0.125,
}
WAPITI_EDGE = {("N", "N"): float.fromhex("0x1.279a2e465142p-4"), ("N", "V"): 1.0, ("V", "V"): -0.15625}

CRFPP_TEXT = b"""version: 100
cost-factor: 1
maxid: 14
xsize: 2

N
V

U00:%x[0,0]
U01:%x[-1,1]
B
B01:%x[0,0]

2 B
10 B01:b
0 U00:a
8 U00:b
6 U01:_B-1

0.5000000000000000
-0.2500000000000000
0.1000000000000000
0.0000000000000000
-1.5000000000000000
2.0000000000000000
0.7500000000000000
0.3000000000000000
-0.0625000000000000
1.2500000000000000
0.1250000000000000
-0.5000000000000000
0.0000000000000000
0.3750000000000000
"""


def crfpp_binary(units: bytes, dsize: int) -> bytes:
    """The binary file of the same model around a dictionary."""
    lines = CRFPP_TEXT.split(b"\n\n")
    weights = [float(x) for x in lines[4].split()]
    labels = b"N\0V\0"
    templates = b"".join(line + b"\0" for line in lines[2].split(b"\n"))
    templates += bytes(-(len(labels) + len(templates)) % 4)
    head = struct.pack("<IidIII", 100, 0, 1.0, len(weights), 2, dsize)
    parts = [head, struct.pack("<I", len(labels)), labels, struct.pack("<I", len(templates)), templates]
    return b"".join((*parts, units, struct.pack(f"<{len(weights)}f", *weights)))
