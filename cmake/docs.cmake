# The pages of capi/docs as they are installed, and the others that users need: links between them lead where they lie then, and those
# to what is not installed are words. Included, it says what makes them when a tree is built:
#
#   cmake -DSOURCE=FOLDER -DTO=FOLDER -P docs.cmake
set(others scripts/README.md bindings/lua/README.md bindings/go/README.md bindings/rust/README.md SECURITY.md
           runtime/plan/README.md runtime/plan/bound/README.md runtime/plan/json/README.md runtime/costs/README.md)
set(places scripts.md bindings/lua.md bindings/go.md bindings/rust.md security.md runtime/plan.md runtime/plan/bound.md
           runtime/plan/json.md runtime/costs.md)

if(NOT TO)
  set(installed_docs ${CMAKE_BINARY_DIR}/generated/docs)
  file(GLOB_RECURSE doc_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/capi/docs/*.md)
  list(TRANSFORM others PREPEND ${CMAKE_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${installed_docs}/README.md
                     COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DTO=${installed_docs} -P ${CMAKE_CURRENT_LIST_FILE}
                     DEPENDS ${doc_pages} ${others} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
  add_custom_target(cairn_docs ALL DEPENDS ${installed_docs}/README.md)
  install(DIRECTORY ${installed_docs}/ ${CMAKE_SOURCE_DIR}/capi/docs/pictures ${CMAKE_SOURCE_DIR}/capi/examples
          DESTINATION ${library_docs} COMPONENT development)
  return()
endif()

# Sets `variable` to where a path of the source tree is installed; nothing: it is not.
function(installed_at path variable)
  set(${variable} "" PARENT_SCOPE)
  list(FIND others "${path}" at)
  if(NOT at EQUAL -1)
    list(GET places ${at} place)
    set(${variable} ${place} PARENT_SCOPE)
  elseif(path MATCHES "^capi/docs/(.+)$")
    set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
  elseif(path MATCHES "^capi/(examples.*)$")
    set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

function(install_page page)
  file(READ ${SOURCE}/${page} text)
  get_filename_component(folder ${SOURCE}/${page} DIRECTORY)
  installed_at(${page} place)
  get_filename_component(from ${TO}/${place} DIRECTORY)
  # A list of texts with brackets would be no list.
  string(REPLACE "](" "<link>(" text "${text}")
  string(REGEX MATCHALL "<link>\\([^)#: ]+[)#]" links "${text}")
  list(REMOVE_DUPLICATES links)
  foreach(link ${links})
    string(REGEX REPLACE "^<link>.(.*).$" "\\1" link "${link}")
    get_filename_component(path ${folder}/${link} ABSOLUTE)
    if(NOT EXISTS ${path})
      continue()
    endif()
    file(RELATIVE_PATH path ${SOURCE} ${path})
    installed_at(${path} place)
    if(place)
      file(RELATIVE_PATH place ${from} ${TO}/${place})
      string(REPLACE "<link>(${link})" "<link>(${place})" text "${text}")
      string(REPLACE "<link>(${link}#" "<link>(${place}#" text "${text}")
    else()
      string(REGEX REPLACE "([.+*])" "\\\\\\1" pattern "${link}")
      string(REGEX REPLACE "\\[([^][<]*)<link>\\(${pattern}(#[^)]*)?\\)" "\\1" text "${text}")
    endif()
  endforeach()
  string(REPLACE "<link>(" "](" text "${text}")
  installed_at(${page} place)
  file(WRITE ${TO}/${place} "${text}")
endfunction()

file(REMOVE_RECURSE ${TO})
file(GLOB_RECURSE pages RELATIVE ${SOURCE} ${SOURCE}/capi/docs/*.md)
foreach(page ${pages} ${others})
  install_page(${page})
endforeach()
