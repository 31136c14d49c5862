# Manual pages and completions, made by the command itself from the tables that its --help prints (scripts/pages).
set(pages_folder ${CMAKE_BINARY_DIR}/pages)
foreach(folder man1 man7 bash zsh fish)
  file(MAKE_DIRECTORY ${pages_folder}/${folder})
endforeach()
file(GLOB page_sources CONFIGURE_DEPENDS scripts/pages/*.lua scripts/cli/*.lua scripts/cli/*/*.lua
     scripts/recipes/*.lua scripts/families/*.lua scripts/families/parts/*.lua scripts/devices/*.json
     bindings/lua/cairn/*.lua)
set(compress)
if(CAIRN_PACKAGES)
  find_program(GZIP gzip REQUIRED)
  set(compress COMMAND ${CMAKE_COMMAND} -E chdir ${pages_folder} sh -c "${GZIP} -9nf man1/*.1 man7/*.7")
endif()
add_custom_command(OUTPUT ${pages_folder}/made
  COMMAND cairn_cli lua ${CMAKE_SOURCE_DIR}/scripts/pages/make.lua ${pages_folder} ${PROJECT_VERSION} ${CAIRN_DATE}
  ${compress}
  COMMAND ${CMAKE_COMMAND} -E touch ${pages_folder}/made
  DEPENDS cairn_cli ${page_sources} VERBATIM)
set(always ALL)
if(CAIRN_SANITIZE)  # nobody installs those
  set(always)
endif()
add_custom_target(cairn_pages ${always} DEPENDS ${pages_folder}/made)

set(zsh_functions zsh/site-functions)
if(CAIRN_PACKAGES)
  set(zsh_functions zsh/vendor-completions)  # where Debian's zsh looks
endif()
install(DIRECTORY ${pages_folder}/man1 ${pages_folder}/man7 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
install(FILES ${pages_folder}/bash/cairn DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
install(FILES ${pages_folder}/zsh/_cairn DESTINATION ${CMAKE_INSTALL_DATADIR}/${zsh_functions} COMPONENT command)
install(FILES ${pages_folder}/fish/cairn.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
