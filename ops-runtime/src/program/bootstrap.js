// What a program finds: `ops`, `search`, `describe`, `input`, `console`. The last value of this script takes the host's messages.
//
// Nothing here guards the host: the sandbox does. A program that breaks what stands here breaks only itself.
(() => {
  const { host, evaluate, watch } = globalThis;
  const HAS = 1, KEYS = 2, CALL = 3, LOG = 4, DONE = 5, FAILED = 6, UNHEARD = 7, HEARD = 8;
  const { parse, stringify } = JSON;
  const Failed = Error, Foreign = DOMException;
  const { apply, defineProperty, deleteProperty } = Reflect;
  const { freeze, create, keys, getOwnPropertyDescriptor } = Object;
  const { isFinite, isInteger, isSafeInteger } = Number;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { get: valueOf, set: setValue } = WeakMap.prototype;
  const say = (kind, value) => host(kind, stringify(value));

  // The lines of a stack that are the program's.
  const lines = (stack) => String(stack).slice(0, 20000).split('\n').filter((line) => line.includes('program.js')).join('\n');

  // The same with the numbers of the lines as the program counts them: the engine counts one line before its first.
  const counted = (stack) => lines(stack).replace(/program\.js:(\d+)/g, (_, line) => `program.js:${line > 1 ? line - 1 : 1}`);

  const { get: getStack, set: setStack } = getOwnPropertyDescriptor(Failed.prototype, 'stack');
  const stackOf = (error) => {
    const stack = apply(getStack, error, []);
    return typeof stack === 'string' ? counted(stack) : stack;
  };
  defineProperty(Failed.prototype, 'stack', { get() { return stackOf(this); }, set: setStack, configurable: true });
  const { captureStackTrace } = Failed;
  defineProperty(Failed, 'captureStackTrace', {
    value(target, above) {
      captureStackTrace(target, above);
      const { stack } = target;
      if (typeof stack === 'string') defineProperty(target, 'stack', { value: counted(stack) });
    },
    writable: true, configurable: true,
  });

  // The stack of an error that the program has. The errors of the engine's own functions, such as `atob`, have it as a member.
  const stackIn = (error) => (error instanceof Foreign ? counted(error.stack) : error.stack);

  // A text for people of any value; nothing that is thrown on the way gets out.
  const shown = (value) => {
    try {
      if (typeof value === 'string') return value;
      if (value instanceof Error) {
        const stack = stackIn(value);
        return `${value}${more(value)}${stack ? `\n${stack}` : ''}`;
      }
      if (typeof value === 'function') return `[function ${value.name}]`;
      if (typeof value === 'object' && value !== null) return json(value, 'the value', true) ?? String(value);
      return typeof value === 'bigint' ? `${value}n` : String(value);
    } catch (error) {
      return '[a value that cannot be shown]';
    }
  };

  // What the error of a call says beside its message.
  const more = ({ code, details }) => {
    const told = details === undefined || details === null ? '' : ` ${shown(details)}`;
    return typeof code === 'string' && code ? ` [${code}]${told}` : told;
  };

  // An error as data, with what it would leave out.
  const told = (error) => {
    const plain = { name: String(error.name), message: String(error.message), ...error };
    if (error.cause !== undefined) plain.cause = error.cause;
    if (isArray(error.errors)) plain.errors = error.errors;
    return plain;
  };

  // JSON has whole numbers of any size, and numbers here are exact up to 2 ** 53 only. Those beyond are BigInts here, and texts
  // with a mark before them on the way.
  let mark;
  const LEAST = -(2n ** 63n), MOST = 2n ** 64n;
  const has64Bits = (number) => LEAST <= number && number < MOST;
  // A whole number that may have lost its last digits before it got here, and that a BigInt can say.
  const isRounded = (number) => isInteger(number) && !isSafeInteger(number) && has64Bits(number);
  let ours = 0;
  // What programs make JSON of by themselves has the digits as text.
  defineProperty(BigInt.prototype, 'toJSON', {
    value() { return ours > 0 ? this : `${this}`; }, writable: true, configurable: true,
  });

  // A value of the host with the numbers that its texts with a mark stand for.
  const exact = (value) => {
    if (typeof value === 'string') return value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value;
    if (typeof value !== 'object' || value === null) return value;
    for (const key of keys(value)) value[key] = exact(value[key]);
    return value;
  };

  // What has no JSON that says what it is, and what to use.
  const foreign = (value) => {
    if (value instanceof Map) return ['a Map', 'use Object.fromEntries(..)'];
    if (value instanceof Set) return ['a Set', 'use Array.from(..)'];
    if (value instanceof Promise) return ['a promise', 'put `await` before it'];
    if (value instanceof RegExp) return ['a regular expression', 'use String(..)'];
    if (value instanceof ArrayBuffer) return ['bytes', 'use Array.from(new Uint8Array(..))'];
    if (isView(value)) return ['bytes', 'use Array.from(..)'];
    if (isArray(value) || typeof value[Symbol.iterator] !== 'function') return undefined;
    return typeof value.next === 'function' ? ['an iterator', 'use Array.from(..)'] : undefined;
  };

  // As JSON does it: a number object is a number.
  const unboxed = (value) => (value instanceof Number || value instanceof BigInt ? value.valueOf() : value);

  // The name of what a call is given.
  const INPUT = 'the input';

  // The JSON of a value. What has none is an error that says what and where.
  const json = (value, name, lenient) => {
    const around = [];
    const none = (kind, key, help, why = 'which has no JSON') => {
      if (lenient) return `[${kind}]`;
      const path = around.map((one) => one.key).concat([key]).filter((part) => part !== '').join('.');
      throw new TypeError(`${name} has ${kind}${path ? ` at \`${path}\`` : ''}, ${why}: ${help}`);
    };
    const visit = function (key, given) {
      while (around.length && around[around.length - 1].value !== this) around.pop();
      const member = typeof given === 'object' ? unboxed(given) : given;
      switch (typeof member) {
        // Half of a surrogate pair is no text in JSON.
        case 'string': return member.toWellFormed();
        case 'number':
          if (!isFinite(member)) return none(`${member}`, key, 'use null or a string');
          // It would be another id than the one that the program says.
          if (name === INPUT && isRounded(member)) {
            const help = 'write it as a BigInt, such as 9007199254740993n, or BigInt(..) of a computed one';
            return none('a whole number beyond 2^53', key, help, 'which JavaScript rounds');
          }
          return member;
        // JSON has `null` in its place, which may mean something else to the operation. A member of an object is left out.
        case 'undefined':
          return name === INPUT && isArray(this) ? none('undefined', key, 'use null, or leave it out') : member;
        case 'function': return none('a function', key, 'call it, or leave it out');
        case 'symbol': return none('a symbol', key, 'use a string');
        case 'bigint':
          if (lenient) return `${member}n`;
          return has64Bits(member) ? `${mark}${member}` : none('a BigInt beyond 64 bits', key, 'use String(..)');
        case 'object': {
          // A date has become JSON already, and an invalid one is `null` there.
          if (member === null) {
            const own = this[key];
            const isDate = own instanceof Date && !isFinite(own.getTime());
            return isDate ? none('an invalid date', key, 'use null, or leave it out') : member;
          }
          if (around.some((one) => one.of === member)) return none('a cycle', key, 'leave it out');
          const [kind, help] = foreign(member) ?? [];
          if (kind) return none(kind, key, help);
          const value = member instanceof Error ? told(member) : member;
          around.push({ key, value, of: member });
          return value;
        }
      }
      return member;
    };
    let text;
    ours += 1;
    try { text = stringify(value, visit); } finally { ours -= 1; }
    // What is left of half pairs stands in names.
    if (text?.includes('\\ud')) text = text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (part) => (part.length > 2 ? '\ufffd' : part));
    return text ?? 'null';
  };

  // More than the host shows, so that it sees what is cut: of pairs of surrogates, it counts each as one.
  const cut = (text) => text.slice(0, 8002).toWellFormed();

  const failure = (error) => {
    const told = { name: 'Error', message: '', stack: '' };
    try {
      if (error instanceof Error) {
        told.name = cut(String(error.name));
        told.message = cut(String(error.message));
        told.stack = cut(lines(stackIn(error)));
        if (typeof error.code === 'string') told.code = cut(error.code);
        const details = error.details ?? error.errors;
        if (details !== undefined && details !== null) told.details = cut(shown(details));
      } else {
        told.message = cut(`the program threw ${shown(error)}`);
      }
    } catch (_) {
      told.message = 'the program threw a value that cannot be shown';
    }
    return told;
  };

  // The numbers of the calls that failed, by their errors.
  const failed = new WeakMap();
  // The numbers of the promises that were told.
  const numbers = new WeakMap();
  let unheard = 0;

  // Tells the host of a promise that failed while nothing waits for it, and if something waits for it later. Nobody else would
  // know of it.
  watch((promise, error, isHeard) => {
    if (isHeard) {
      const number = apply(valueOf, numbers, [promise]);
      if (number !== undefined) say(HEARD, number);
    } else {
      apply(setValue, numbers, [promise, unheard]);
      say(UNHEARD, [unheard++, apply(valueOf, failed, [error]) ?? null, failure(error)]);
    }
  });

  const waiting = create(null);
  let calls = 0;

  const call = (namespace, name, value) => {
    const text = json(value === undefined ? {} : value, INPUT);
    const made = new Failed();
    return new Promise((resolve, reject) => {
      const number = calls++;
      waiting[number] = { resolve, reject, made };
      host(CALL, stringify([number, namespace, name]) + text);
    });
  };

  const answer = (number, isError, given, isMarked) => {
    const { resolve, reject, made } = waiting[number];
    delete waiting[number];
    const value = isMarked ? exact(given) : given;
    if (!isError) return resolve(value);
    const thrown = new Failed(value.message);
    for (const name of ['code', 'details']) defineProperty(thrown, name, { value: value[name], enumerable: true });
    defineProperty(thrown, 'name', { value: 'CallError' });
    defineProperty(thrown, 'stack', { value: stackOf(made), writable: true, configurable: true });
    apply(setValue, failed, [thrown, number]);
    reject(thrown);
  };

  // Names are looked up when they are used, so that thousands of operations cost nothing.
  const table = (path, member) => {
    const known = create(null);
    const found = (key) => {
      if (typeof key !== 'string') return undefined;
      if (key in known) return known[key];
      // What promises and JSON ask of every value.
      if (key === 'then' || key === 'toJSON') { if (parse(say(HAS, [...path, key])) !== true) return undefined; }
      const answer = parse(say(HAS, [...path, key]));
      if (answer !== true) throw new TypeError(answer);
      return (known[key] = member(key));
    };
    return new Proxy(freeze(create(null)), {
      get: (_, key) => found(key),
      has: (_, key) => typeof key === 'string' && parse(say(HAS, [...path, key])) === true,
      ownKeys: () => [],
      set: () => { throw new TypeError(`\`${['ops', ...path].join('.')}\` cannot be changed`); },
    });
  };

  const line = (values) => {
    const text = values.map((value) => shown(value).slice(0, 10001)).join(' ');
    return (text.length > 10000 ? `${text.slice(0, 10000)}... (the rest of the line is left out)` : text).toWellFormed();
  };
  const log = (level) => (...values) => { host(LOG, `${level} ${line(values)}`); };
  const console = freeze({ log: log('log'), info: log('info'), warn: log('warn'), error: log('error'), debug: log('log') });
  const put = (name, value) => defineProperty(globalThis, name, { value, writable: false, configurable: false, enumerable: true });

  // True for what `map`, `forEach`, `Array.from` and iterators give a function: an item, its place, and in lists, sets and maps also
  // what they go through.
  const isOfEach = (all, isNext) => {
    const [item, place, whole] = all;
    if (all.length === 2) return isNext;
    if (all.length !== 3 || typeof whole !== 'object' || whole === null) return false;
    return isArray(whole) ? whole[place] === item : typeof whole[Symbol.iterator] === 'function';
  };

  // A function for programs, of so many arguments. It passes over none: with more, and with what `make` refuses, its promise fails.
  const taking = (most, help, make) => {
    // The places of the next items, where calls have an item and its place alone: one for each list that is gone through, which
    // may be several at a time.
    const next = [];
    return function (...all) {
      try {
        // A second argument is meant by `ops.namespace.name(item, 20)`, by a number that is not the next place of a list, and of a
        // function that takes two. Every list begins at 0, so a 0 that is meant is not told from a place.
        const at = all[1] === 0 ? next.length : next.indexOf(all[1]);
        const isNext = most === 1 && this === undefined && all.length === 2 && at >= 0;
        if (isNext) next[at] = all[1] + 1;
        const [first, second, ...others] = isOfEach(all, isNext) ? [all[0]] : all;
        const beyond = most > 1 ? others : [second, ...others];
        if (beyond.some((value) => value !== undefined)) throw new TypeError(help);
        return make(first, second);
      } catch (error) {
        return Promise.reject(error);
      }
    };
  };

  const SEARCH = "`search` takes a text, and a limit from 1 if need be: search('close an issue', 5)";
  const find = taking(2, SEARCH, (words, limit) => {
    const isLimit = limit === undefined || limit === null || (isInteger(limit) && limit >= 1);
    if (typeof words !== 'string' || !isLimit) throw new TypeError(SEARCH);
    return call('', 'search', { words, limit });
  });

  const DESCRIBE = "`describe` takes an id, and 'short' or 'whole' if need be: describe('shop.showPet', 'whole')";
  const tell = taking(2, DESCRIBE, (id, detail) => {
    if (![undefined, null, 'short', 'whole'].includes(detail)) throw new TypeError(DESCRIBE);
    return call('', 'describe', { id: typeof id === 'string' ? id : shown(id), detail });
  });

  const run = ({ source, input, seed, search, describe, mark: given }) => {
    mark = given;
    // xorshift128, so that a replay draws the same numbers.
    let [a, b, c, d] = seed;
    Math.random = () => {
      const t = a ^ (a << 11);
      [a, b, c] = [b, c, d];
      d = (d ^ (d >>> 19) ^ t ^ (t >>> 8)) >>> 0;
      return d / 4294967296;
    };
    put('ops', table([], (namespace) => table([namespace], (name) => {
      const help = `\`ops.${namespace}.${name}\` takes one input: all that it takes stands in one object`;
      const operation = taking(1, help, (input) => call(namespace, name, input));
      return freeze(defineProperty(operation, 'name', { value: name }) && operation);
    })));
    put('input', exact(input));
    put('console', console);
    if (search) put('search', freeze(find));
    if (describe) put('describe', freeze(tell));
    const ended = (error) => say(FAILED, failure(error));
    try {
      // A line of its own, so that the columns are the program's.
      const main = evaluate(`(async () => {\n${source}\n})`, 'program.js');
      if (typeof main !== 'function') throw new SyntaxError('the program has a `}` too many');
      main().then((value) => { host(DONE, json(value, 'the result')); }).then(undefined, ended);
    } catch (error) {
      ended(error);
    }
  };

  // No text becomes code, nothing is shared between threads, and nothing tells when memory is freed.
  const none = freeze(function () { throw new TypeError('text cannot be made into code here'); });
  for (const sample of [function () {}, async () => {}, function* () {}, async function* () {}]) {
    defineProperty(Object.getPrototypeOf(sample), 'constructor', { value: none, writable: false, configurable: false });
  }
  for (const name of ['eval', 'Function', 'host', 'evaluate', 'watch', 'Atomics', 'SharedArrayBuffer', 'WeakRef', 'FinalizationRegistry', 'performance', 'gc', 'navigator']) {
    deleteProperty(globalThis, name);
  }

  return (text) => {
    // Lists, whose members are never those of a prototype.
    const message = parse(text);
    if (message.length === 1) run(message[0]); else answer(message[0], message[1], message[2], message[3]);
  };
})();
