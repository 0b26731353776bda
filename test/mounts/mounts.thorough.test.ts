import { mountsAgree } from './agreement.ts'

/* Without a prefix: `test/hosts/prefix.test.ts`. */
mountsAgree(['/models/a'])
