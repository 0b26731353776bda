import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd'
import {
  CLIENT_ERROR_STATUS,
  ERROR_STATUS,
  type ErrorBody,
  isStowageError,
  type Limits,
  type ServiceErrorCode,
  StowageError,
  type StowageErrorCode,
} from 'stowage'

const error = new StowageError('object_too_large', 'too large')
expectAssignable<Error>(error)
expectType<StowageErrorCode>(error.code)
expectType<number>(error.statusCode)
expectType<boolean>(error.isRetryable)
expectType<ErrorBody>(error.toJSON())
expectError(new StowageError('no_such_code', 'message'))

// The codes are a closed union, so that users can switch over them.
expectAssignable<StowageErrorCode>('not_found')
expectNotAssignable<StowageErrorCode>('something_else')
expectType<404>(ERROR_STATUS.not_found)
expectAssignable<Readonly<Record<ServiceErrorCode, number>>>(ERROR_STATUS)
expectAssignable<Readonly<Record<StowageErrorCode, number>>>({ ...ERROR_STATUS, ...CLIENT_ERROR_STATUS })

// Errors of another copy of the package are recognized, too.
declare const thrown: unknown
if (isStowageError(thrown)) expectType<StowageErrorCode>(thrown.code)

// Limits cannot be changed after the fact.
declare const limits: Limits
expectError((limits.objectBytesMax = 1))
