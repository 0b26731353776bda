#!/usr/bin/env node
/*
 * The thread pool that zlib, files and LevelDB share takes its size at its first use, and Node's loader of ES modules uses it before any line
 * of one runs: only a CommonJS file, which is loaded without it, comes early enough. A size that the user has chosen stays.
 *
 * Each core compresses, and two threads may wait for syncs. More threads only take the cores from the main thread: with 14 for syncs and
 * reads, gzipped uploads were a tenth slower. Reads wait behind compressions, which take less than a millisecond each.
 */
const THREADS_FOR_SYNCS = 2
const { availableParallelism } = process.getBuiltinModule('node:os')

process.env.UV_THREADPOOL_SIZE ??= String(availableParallelism() + THREADS_FOR_SYNCS)
void import('./main.ts')
