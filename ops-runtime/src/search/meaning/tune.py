"""Moves the vectors of `words.bin` a little, so that questions lie nearer to the operations that answer them.

    tune.py OPERATIONS.tsv WORDS.bin TUNED.bin QUESTIONS.tsv... [--without FOLD]

`train.py` makes WORDS.bin. Each question is to be nearer to its answer than to the operations that it was nearest to before and
to the answers of other questions. Few steps are taken, as the vectors soon know the questions by heart. With `--without`, every
fifth question from that number on is left out, so that the nearness of those can be judged.
"""
import re, struct, sys
import numpy as np, torch

torch.set_num_threads(1)
torch.manual_seed(0)
random = np.random.RandomState(0)
STEPS, RATE, BATCH, RIVALS, NEAREST, SHARPNESS = 150, 0.03, 48, 12, 60, 15.0

arguments = sys.argv[1:]
without = None
if '--without' in arguments:
    at = arguments.index('--without')
    without = int(arguments[at + 1])
    del arguments[at:at + 2]
operations_file, source, target, *questions_files = arguments

# The table, as `meaning.rs` reads it.
table = open(source, 'rb').read()
count, size, length = struct.unpack('<III', table[:12])
names = table[12:12 + length]
scales = np.frombuffer(table, '<f4', count, 12 + length)
packed = np.frombuffer(table, np.uint8, count * size // 2, 12 + length + 4 * count).reshape(count, -1)
vectors = np.empty((count, size), np.float32)
vectors[:, 0::2], vectors[:, 1::2] = (packed & 15).astype(np.float32) - 8, (packed >> 4).astype(np.float32) - 8
vectors *= scales[:, None]
number = {piece: at for at, piece in enumerate(names.decode().split('\n'))}

def words(text):
    text = re.sub(r'https?://\S+', ' ', re.sub(r'<[a-zA-Z/][^>]*>', ' ', text))
    text = re.sub(r'([a-z0-9])([A-Z])', r'\1 \2', text)
    text = re.sub(r'([A-Z])([A-Z][a-z])', r'\1 \2', text)
    return re.findall(r'[a-z0-9]+', text.lower())

split = {}
def pieces_of(text, most=64):
    found = []
    for word in words(text):
        if word not in split:
            start, own = 0, []
            while start < len(word):
                end = len(word)
                while end > start and ('##' if start else '') + word[start:end] not in number:
                    end -= 1
                if end == start:
                    break
                own.append(number[('##' if start else '') + word[start:end]])
                start = end
            split[word] = own
        found += split[word]
    return found[:most] or [0]

operations = [line.rstrip('\n').split('\t') for line in open(operations_file)]
place = {operation[0]: at for at, operation in enumerate(operations)}
lead = lambda text: re.split(r'\.\s|\n\n', re.sub(r'<[^>]+>', ' ', text).strip())[0][:200]
texts = [pieces_of(' '.join([id.replace('.', ' ', 1), title, lead(about)])) for id, title, about in operations]
asked = []
for line in [line for file in questions_files for line in open(file) if '\t' in line and not line.startswith('#')]:
    question, answers = line.rstrip('\n').split('\t')
    asked.append((pieces_of(question), [place[id.strip()] for id in answers.split(',') if id.strip() in place]))
asked = [pair for at, pair in enumerate(asked) if pair[1] and at % 5 != without]

def meaning(table, texts):
    starts = np.cumsum([0] + [len(text) for text in texts[:-1]])
    bags = torch.nn.functional.embedding_bag(torch.tensor(np.concatenate(texts)), table, torch.tensor(starts), mode='sum')
    return torch.nn.functional.normalize(bags, dim=1)

start = torch.tensor(vectors)
near = (meaning(start, [question for question, _ in asked]) @ meaning(start, texts).T).numpy()
rivals = [[at for at in np.argsort(-row)[:NEAREST] if at not in answers] for row, (_, answers) in zip(near, asked)]
pupil = start.clone().requires_grad_()
optimizer = torch.optim.Adam([pupil], lr=RATE * float(start.abs().mean()))
for step in range(STEPS):
    some, own = [], []
    batch = random.choice(len(asked), BATCH, replace=False)
    for at in batch:
        own.append(len(some))
        some.append(texts[random.choice(asked[at][1])])
        some += [texts[rival] for rival in random.choice(rivals[at], RIVALS, replace=False)]
    nearness = meaning(pupil, [asked[at][0] for at in batch]) @ meaning(pupil, some).T
    loss = torch.nn.functional.cross_entropy(nearness * SHARPNESS, torch.tensor(own))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(step + 1, float(loss.detach()), flush=True)

vectors = pupil.detach().numpy()
scales = np.abs(vectors).max(1) / 7 + 1e-12
numbers = np.clip(np.round(vectors / scales[:, None]), -7, 7).astype(np.int8) + 8
with open(target, 'wb') as file:
    file.write(struct.pack('<III', count, size, len(names)))
    file.write(names)
    file.write(scales.astype('<f4').tobytes())
    file.write((numbers[:, 0::2] | numbers[:, 1::2] << 4).astype(np.uint8).tobytes())
