#!/usr/bin/env node
/*
 * The thread pool that zlib, files and LevelDB share takes its size at its first use, and Node's loader of ES modules uses it before any line
 * of one runs: only a CommonJS file, which is loaded without it, comes early enough. A size that the user has chosen stays.
 *
 * About as many compressions run at a time as there are cores, and two syncs; the rest is for reads, which shall wait for neither.
 */
const THREADS_FOR_READS_AND_SYNCS = 14
const { availableParallelism } = process.getBuiltinModule('node:os')

process.env.UV_THREADPOOL_SIZE ??= String(availableParallelism() + THREADS_FOR_READS_AND_SYNCS)
void import('./main.ts')
