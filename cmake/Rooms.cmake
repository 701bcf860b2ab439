# cmake/Rooms.cmake -- one CMake target per room, and one line per test program.

add_library(vlr_flags INTERFACE)
target_include_directories(vlr_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(vlr_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow>
    $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/src/=>)
# GCC 13 sees dangling references where a function returns a reference into its argument.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-Wdangling-reference VLR_HAS_DANGLING_REFERENCE)
if(VLR_HAS_DANGLING_REFERENCE)
    target_compile_options(vlr_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()
if(VLRERANK_WERROR)
    target_compile_options(vlr_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
target_link_libraries(vlr_flags INTERFACE Threads::Threads fmt::fmt)

# ATen's headers cost 8 s a file; precompiled once, they cost each room that includes them 1 s.
file(WRITE ${PROJECT_BINARY_DIR}/pch.cpp "")
add_library(vlr_pch OBJECT ${PROJECT_BINARY_DIR}/pch.cpp)
target_link_libraries(vlr_pch PUBLIC vlr_flags vlr_torch)
target_precompile_headers(vlr_pch PRIVATE <ATen/ATen.h> <string> <vector> <functional>)

# vlr_room(NAME SOURCES ... USES room|target ... [TENSORS]): object library of src/NAME.
# Object libraries keep the operator registrations that a static library would drop.
# TENSORS: the room includes ATen, so it links LibTorch and takes the precompiled header.
function(vlr_room name)
    cmake_parse_arguments(PARSE_ARGV 1 room "TENSORS" "" "SOURCES;USES")
    add_library(vlr_${name} OBJECT ${room_SOURCES})
    target_link_libraries(vlr_${name} PUBLIC vlr_flags ${room_USES})
    if(room_TENSORS)
        target_link_libraries(vlr_${name} PUBLIC vlr_torch)
        target_precompile_headers(vlr_${name} REUSE_FROM vlr_pch)
        # GCC 13 takes LibTorch's vector<bool> for an overrun where it inlines a custom Function.
        target_compile_options(vlr_${name} PRIVATE
            "$<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-stringop-overflow>")
        set_property(GLOBAL APPEND PROPERTY VLR_TENSOR_ROOMS vlr_${name})
    endif()
    set_property(GLOBAL APPEND PROPERTY VLR_ROOMS vlr_${name})
endfunction()

# Object files do not travel through a chain of object libraries: whoever links must name them all.
# vlr_link(TARGET room ...): links the named rooms and every room these use.
function(vlr_link target)
    set(open ${ARGN})
    set(closed "")
    while(open)
        list(POP_FRONT open room)
        if(room IN_LIST closed)
            continue()
        endif()
        list(APPEND closed ${room})
        get_target_property(used ${room} LINK_LIBRARIES)
        foreach(other IN LISTS used)
            if(TARGET ${other} AND other MATCHES "^vlr_")
                get_target_property(type ${other} TYPE)
                if(type STREQUAL "OBJECT_LIBRARY")
                    list(APPEND open ${other})
                endif()
            endif()
        endforeach()
    endwhile()
    target_link_libraries(${target} PRIVATE ${closed})
endfunction()

# vlr_test(NAME SOURCES ... USES room ... [RANKS 1 2 4] [LABELS ...] [TIMEOUT s]): a GoogleTest
# program. With RANKS it runs under mpirun, once for each number, and brings its own main().
function(vlr_test name)
    cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "SOURCES;USES;RANKS;LABELS")
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 120)
    endif()
    add_executable(${name} ${test_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${name} PRIVATE
        VLR_SOURCE_DIR="${PROJECT_SOURCE_DIR}" VLR_BINARY_DIR="${PROJECT_BINARY_DIR}")
    vlr_link(${name} ${test_USES})
    get_property(tensor_rooms GLOBAL PROPERTY VLR_TENSOR_ROOMS)
    foreach(room IN LISTS test_USES)
        if(room IN_LIST tensor_rooms)
            target_precompile_headers(${name} REUSE_FROM vlr_pch)
            break()
        endif()
    endforeach()
    if(test_RANKS)
        target_link_libraries(${name} PRIVATE GTest::gtest)
        foreach(ranks IN LISTS test_RANKS)
            add_test(NAME ${name}.${ranks} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG}
                ${ranks} ${VLR_MPIEXEC_FLAGS} $<TARGET_FILE:${name}>)
            set_tests_properties(${name}.${ranks} PROPERTIES PROCESSORS ${ranks}
                TIMEOUT ${test_TIMEOUT} LABELS "mpi;${test_LABELS}"
                ENVIRONMENT "OMP_NUM_THREADS=1;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
        endforeach()
    else()
        target_link_libraries(${name} PRIVATE GTest::gtest_main)
        add_test(NAME ${name} COMMAND ${name})
        set_tests_properties(${name} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "unit;${test_LABELS}"
            ENVIRONMENT "OMP_NUM_THREADS=1;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
    endif()
endfunction()
set(VLR_MPIEXEC_FLAGS --oversubscribe CACHE STRING "Flags of mpirun in the tests")

# vlr_headers_test(): every header of src compiles alone. One object library, built with the tests.
function(vlr_headers_test)
    file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/src CONFIGURE_DEPENDS
        ${PROJECT_SOURCE_DIR}/src/*.hpp)
    set(sources "")
    foreach(header IN LISTS headers)
        string(REPLACE "/" "_" name ${header})
        set(source ${PROJECT_BINARY_DIR}/headers/${name}.cpp)
        file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"  // alone\n" @ONLY)
        list(APPEND sources ${source})
    endforeach()
    add_library(vlr_headers OBJECT ${sources})
    get_property(rooms GLOBAL PROPERTY VLR_ROOMS)
    foreach(room IN LISTS rooms)
        target_include_directories(vlr_headers PRIVATE
            $<TARGET_PROPERTY:${room},INTERFACE_INCLUDE_DIRECTORIES>)
        target_include_directories(vlr_headers SYSTEM PRIVATE
            $<TARGET_PROPERTY:${room},INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>)
    endforeach()
    target_link_libraries(vlr_headers PRIVATE vlr_flags vlr_torch)
endfunction()
