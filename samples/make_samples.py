"""Make the two sample files, ours.jsonl.gz and theirs.jsonl.gz: what two relays hold of the same month.

    pip install "negvec[samples]"        # for coincurve, which signs
    python samples/make_samples.py       # writes both files beside this script

The events are invented, but right in form: ids are hashed as NIP-01 says, and signed as BIP-340 says with keys derived
from a number. Nothing comes from the clock or the system, so that every run gives the same files, byte for byte (the
same lines, if zlib is another one).

Both relays were down for some hours, and both lost single events besides:

    4,290 events in all; 4,003 on both, 123 only in ours, 164 only in theirs
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import TypedDict

from coincurve import PrivateKey

SEED = 20240501
AUTHORS = 150
EVENTS = 4290
SINCE, UNTIL = 1714521600, 1717200000  # May 2024

# What a relay lacks: runs of neighbours, from when it was down, and single events.
OURS_LACKS_RUNS, OURS_LACKS_SINGLES = (70, 50, 40), 4
THEIRS_LACKS_RUNS, THEIRS_LACKS_SINGLES = (80, 40), 3


class Event(TypedDict):
    content: str
    created_at: int
    id: str
    kind: int
    pubkey: str
    sig: str
    tags: list[list[str]]


class Author:
    def __init__(self, number: int) -> None:
        self.name = f"{NAMES[number % len(NAMES)]}{number // len(NAMES) or ''}"
        self.key = PrivateKey(sha256(f"negvec sample author {number}"))
        self.pubkey = self.key.public_key_xonly.format().hex()

    def sign(self, created_at: int, kind: int, tags: list[list[str]], content: str) -> Event:
        hashed = sha256(compact([0, self.pubkey, created_at, kind, tags, content]))
        sig = self.key.sign_schnorr(hashed, aux_randomness=sha256(f"negvec sample signature {hashed.hex()}"))
        return {
            "content": content,
            "created_at": created_at,
            "id": hashed.hex(),
            "kind": kind,
            "pubkey": self.pubkey,
            "sig": sig.hex(),
            "tags": tags,
        }


def make() -> tuple[list[str], list[str]]:
    """Return the lines of both files, oldest event first, as strfry exports them."""
    rng = random.Random(SEED)
    lines = [compact(event) for event in month(rng)]
    ours_lacks, theirs_lacks = losses(rng)
    ours = [line for row, line in enumerate(lines) if row not in ours_lacks]
    theirs = [line for row, line in enumerate(lines) if row not in theirs_lacks]
    return ours, theirs


def month(rng: random.Random) -> list[Event]:
    """Return all events, sorted by created_at and id."""
    authors = [Author(number) for number in range(AUTHORS)]
    # One profile and one contact list each, since these replace their predecessors; most notes come from a few authors.
    posts = [(kind, author) for kind in (0, 3) for author in authors]
    rest = EVENTS - len(posts)
    busy = rng.choices(authors, [1 / (1 + rank) for rank in range(AUTHORS)], k=rest)
    posts += zip(rng.choices([1, 7], [6, 1], k=rest), busy, strict=True)
    rng.shuffle(posts)

    events: list[Event] = []
    notes: list[Event] = []
    for created_at, (kind, author) in zip(timestamps(rng), posts, strict=True):
        if kind == 0:
            content, tags = profile(rng, author)
        elif kind == 3:
            content, tags = "", [["p", friend.pubkey] for friend in rng.sample(authors, rng.randint(4, 30))]
        elif kind == 7 and notes:
            content, tags = reaction(rng, rng.choice(notes[-200:]))
        elif notes and rng.random() < 0.35:
            kind = 1
            content, tags = reply(rng, rng.choice(notes[-200:]))
        else:
            kind = 1
            content, tags = note(rng)
        events.append(author.sign(created_at, kind, tags, content))
        if kind == 1:
            notes.append(events[-1])
    return sorted(events, key=lambda event: (event["created_at"], event["id"]))


def timestamps(rng: random.Random) -> list[int]:
    """Return a created_at for each event: few at night, and one in twelve in the same second as another."""
    times: list[int] = []
    while len(times) < EVENTS:
        if times and rng.random() < 1 / 12:
            times.append(rng.choice(times))
            continue
        time = rng.randrange(SINCE, UNTIL)
        if 6 <= time // 3600 % 24 < 23 or rng.random() < 0.2:
            times.append(time)
    return sorted(times)


def losses(rng: random.Random) -> tuple[set[int], set[int]]:
    """Return the rows that ours lacks, and those that theirs lacks; none is lost to both."""
    ours: set[int] = set()
    theirs: set[int] = set()
    runs = [(length, ours) for length in OURS_LACKS_RUNS] + [(length, theirs) for length in THEIRS_LACKS_RUNS]
    rng.shuffle(runs)
    share = EVENTS // len(runs)  # one run falls into each share of the month
    for number, (length, lost) in enumerate(runs):
        start = number * share + rng.randrange(share - length)
        lost.update(range(start, start + length))
    left = [row for row in range(EVENTS) if row not in ours | theirs]
    singles = rng.sample(left, OURS_LACKS_SINGLES + THEIRS_LACKS_SINGLES)
    return ours.union(singles[:OURS_LACKS_SINGLES]), theirs.union(singles[OURS_LACKS_SINGLES:])


def note(rng: random.Random) -> tuple[str, list[list[str]]]:
    text = filled(rng, rng.choice(NOTES))
    if rng.random() < 0.4:
        text += rng.choice([" ", "\n\n"]) + filled(rng, rng.choice(AFTERTHOUGHTS))
    tags = []
    if rng.random() < 0.25:
        topic = rng.choice(TOPICS)
        text += f" #{topic}"
        tags.append(["t", topic])
    return text, tags


def reply(rng: random.Random, to: Event) -> tuple[str, list[list[str]]]:
    text = filled(rng, rng.choice(REPLIES))
    if rng.random() < 0.3:
        text += " " + filled(rng, rng.choice(AFTERTHOUGHTS))
    # The root of a thread is marked so, and what is answered, if that is another note, as reply (NIP-10).
    root = next((tag[1] for tag in to["tags"] if tag[0] == "e"), to["id"])
    tags = [["e", root, "wss://relay.example.com", "root"]]
    if root != to["id"]:
        tags.append(["e", to["id"], "wss://relay.example.com", "reply"])
    return text, [*tags, ["p", to["pubkey"]]]


def reaction(rng: random.Random, to: Event) -> tuple[str, list[list[str]]]:
    return rng.choice("+++++🤙🔥💜😂👀"), [["e", to["id"]], ["p", to["pubkey"]], ["k", "1"]]


def profile(rng: random.Random, author: Author) -> tuple[str, list[list[str]]]:
    about = f"{rng.choice(TRADES)} in {rng.choice(SLOTS['place'])}. {filled(rng, rng.choice(AFTERTHOUGHTS))}"
    return compact({"name": author.name, "about": about, "nip05": f"{author.name}@example.com"}), []


def filled(rng: random.Random, template: str) -> str:
    text = template.format(**{slot: rng.choice(words) for slot, words in SLOTS.items()})
    return text[0].upper() + text[1:]


def sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write(path: Path, lines: list[str]) -> None:
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write("".join(line + "\n" for line in lines).encode())


NAMES = [
    *("ada", "bela", "cem", "dora", "emil", "fatou", "gustav", "hana", "ines", "jonas", "kofi", "lena", "mira", "noor"),
    *("otto", "pia", "quirin", "rosa", "sami", "tove", "ulf", "vera", "wim", "xenia", "yuki", "zora", "anouk", "bram"),
    *("clio", "dario", "elif", "finn"),
]

TRADES = ["Baker", "Nurse", "Gardener", "Runs a small relay", "Bike mechanic", "Teaches physics", "Carpenter", "Sailor"]

TOPICS = ["nostr", "coffee", "garden", "bikes", "music", "bread", "birds", "selfhosting", "trains", "books"]

SLOTS = {
    "place": ["Lisbon", "Ghent", "Accra", "Kyoto", "Tartu", "Porto Alegre", "Malmö", "Izmir", "the valley", "Brno"],
    "time": ["this morning", "last night", "after lunch", "before sunrise", "on the way home", "at noon"],
    "thing": ["the old radio", "my bike", "the oven", "a borrowed tent", "the greenhouse", "our relay", "the piano"],
    "food": ["rye bread", "lentil soup", "an almond cake", "pickled plums", "flatbread", "dumplings", "a whole melon"],
    "who": ["my sister", "the neighbour", "a stranger", "our youngest", "the postman", "an old friend", "grandma"],
    "bird": ["a heron", "two swifts", "a wren", "the blackbird", "a very loud crow", "an owl", "a kingfisher"],
    "number": ["two", "three", "five", "seven", "a dozen", "forty", "too many"],
}

NOTES = [
    "Saw {bird} {time}, closer than ever.",
    "{bird} on the balcony again {time}. I think it wants {food}.",
    "Good morning from {place}! Some {number} degrees and not a cloud.",
    "Baked {food} {time}. {who} ate {number} pieces and asked for the recipe.",
    "Fixed {thing} {time} with nothing but tape and patience.",
    "Does anyone here know how to repair {thing}? {who} says it can't be done.",
    "The night train to {place} is {number} hours late, and nobody minds.",
    "Moved {thing} to {place}. Heavier than I remembered.",
    "TIL that {who} used to play in a band in {place}.",
    "Reading on the tram {time}. Missed my stop, worth it.",
    "Walked from one end of {place} to the other {time}. My feet disagree with the map.",
    "{number} tomatoes are ripe. The snails had the others.",
    "First swim of the year, near {place}. Cold!",
    "Market day in {place}: came for {food}, left with {thing}.",
    'Overheard {time}: "you can\'t sync what you never had". Still thinking about it.',
    "Our relay ran out of disk {time}. Deleted logs, found {number} gigabytes, all is well.",
    "Backups are like {food}: you only learn how good they are once you need one.",
    "Played {number} games of chess against {who}. Lost all but one.",
    "Rain in {place}, tea on the stove, {thing} in pieces on the table.",
    "Heard {bird} {time} and for a moment the whole street was quiet.",
    "gm ☕",
    "Who else is up? {place} is asleep.",
    "Three things {time}: {food}, {who}, a long nap.",
    "Is it just me or is {place} louder than last year?",
]

AFTERTHOUGHTS = [
    "More tomorrow.",
    "Pictures later.",
    "No regrets.",
    "Would do it again, with {food}.",
    "Greetings from {place}.",
    "{who} would not believe it.",
    "It took {number} tries.",
    "Ask me about {thing}.",
    "🌱",
    "That's all, carry on.",
    "Now looking for {bird}.",
]

REPLIES = [
    "Same here in {place}!",
    "Haha, {who} says the same.",
    "You should try it with {food}.",
    "I had that with {thing} once. Took {number} days.",
    "Beautiful. Which part of {place} is this?",
    "Not sure I agree, but I like how you put it.",
    "Yes!",
    "This made my day 💜",
    "Where did you get {food}?",
    "Careful, that is how I lost {thing}.",
    "We had {bird} here {time}, too.",
    "How many? {number}?",
    "Thanks, I'll tell {who}.",
    "Come to {place}, we have plenty.",
]


if __name__ == "__main__":
    ours, theirs = make()
    folder = Path(__file__).parent
    write(folder / "ours.jsonl.gz", ours)
    write(folder / "theirs.jsonl.gz", theirs)
    print(f"{len(ours)} events in ours.jsonl.gz, {len(theirs)} in theirs.jsonl.gz, {len({*ours, *theirs})} in all")
