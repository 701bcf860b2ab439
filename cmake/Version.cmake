# cmake/Version.cmake -- the version text that `vlrerank --version` prints, with git's own word.
execute_process(COMMAND git describe --always --dirty --tags
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE VLR_GIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT VLR_GIT)
    set(VLR_GIT "no git")
endif()
