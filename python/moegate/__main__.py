# SPDX-License-Identifier: Apache-2.0
from moegate._program import main

main()
