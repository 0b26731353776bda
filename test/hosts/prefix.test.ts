import { mountsAgree } from '../mounts/agreement.ts'

mountsAgree(['', '/models'])
