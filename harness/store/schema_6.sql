-- SPDX-License-Identifier: Apache-2.0

-- Nothing: the number is kept for campaigns.
