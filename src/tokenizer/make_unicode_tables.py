"""Writes unicode_tables.inc: what the `tokenizers` package's own tables say of every code point.

    python make_unicode_tables.py > unicode_tables.inc      # needs tokenizers 0.23.3

Four sets, as ascending half-open ranges: letters (\\p{L}), numbers (\\p{N}), white space (\\s), and
"active" ones: those that NFC can change, move or compose with what stands before them.
"""
from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers import __version__ as version

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def matching(pattern):
    """Code points that the pattern matches: those which vanish when matches are removed."""
    split = pre_tokenizers.Split(Regex(pattern), behavior="removed")
    found = []
    for start in range(0, len(POINTS), 4096):
        block = POINTS[start:start + 4096]
        kept = {c for piece, _ in split.pre_tokenize_str("".join(map(chr, block))) for c in piece}
        found += [c for c in block if chr(c) not in kept]
    return found


def active():
    """Code points c for which NFC(c) differs, or that move past or compose with a predecessor."""
    nfc = normalizers.NFC().normalize_str
    found = set()
    for c in POINTS:
        s = chr(c)
        # U+0345 has the highest combining class and U+0334 the lowest: a mark must pass one of them.
        if nfc(s) != s or nfc("\u0345" + s) != "\u0345" + s or nfc(s + "\u0334") != s + "\u0334":
            found.add(c)
    found |= {0x0334, 0x0345}
    found |= set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))  # Hangul vowels and finals
    # Second halves of compositions are starters only in a few Indic scripts: take them from every
    # two-character decomposition that NFC puts together again.
    nfd = normalizers.NFD().normalize_str
    for c in POINTS:
        parts = nfd(chr(c))
        for cut in range(1, len(parts)):
            if nfc(parts) == chr(c):
                found.add(ord(parts[cut]))
    return sorted(found)


def ranges(points):
    out = []
    for c in points:
        if out and out[-1][1] == c:
            out[-1][1] = c + 1
        else:
            out.append([c, c + 1])
    return out


def show(name, points):
    print(f"constexpr CodeRange {name}[] = {{")
    line = "   "
    for first, last in ranges(points):
        item = f" {{{first:#x}, {last:#x}}},"
        if len(line) + len(item) > 98:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


print(f"// unicode_tables.inc -- written by make_unicode_tables.py from tokenizers {version}; do not edit.")
show("kLetters", matching(r"\p{L}"))
show("kNumbers", matching(r"\p{N}"))
show("kSpaces", matching(r"\s"))
show("kActive", active())
