# SPDX-License-Identifier: Apache-2.0
# Run by CPack before it packs: links to the installed folder from where shells, man and Python look.
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
foreach(path IN ITEMS bin/moegate share/man/man1/moegate.1 share/bash-completion/completions/moegate
                      share/fish/vendor_completions.d/moegate.fish)
  cmake_path(GET path PARENT_PATH folder)
  file(MAKE_DIRECTORY ${usr}/${folder})
  string(REGEX REPLACE "[^/]+" ".." up ${folder})
  file(CREATE_LINK ${up}/lib/moegate/${path} ${usr}/${path} SYMBOLIC)
endforeach()
file(MAKE_DIRECTORY ${usr}/share/zsh/vendor-completions ${usr}/lib/python3/dist-packages)
file(CREATE_LINK ../../../lib/moegate/share/zsh/site-functions/_moegate ${usr}/share/zsh/vendor-completions/_moegate SYMBOLIC)
file(CREATE_LINK ../../moegate/python/moegate ${usr}/lib/python3/dist-packages/moegate SYMBOLIC)
