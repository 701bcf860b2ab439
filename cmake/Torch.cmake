# cmake/Torch.cmake -- LibTorch from a torch wheel: the CPU half always, the CUDA half on demand.
# The wheel is a CUDA build, but linking c10 and torch_cpu alone needs no CUDA toolkit.
set(TORCH_DIR "" CACHE PATH "Folder that holds LibTorch's include/ and lib/ (a wheel's torch/)")
if(NOT TORCH_DIR)
    find_path(VLR_TORCH_FOUND include/ATen/core/Tensor.h
        PATHS ${PROJECT_SOURCE_DIR}/.deps/site/torch $ENV{VLRERANK_TORCH_DIR} NO_DEFAULT_PATH)
    if(NOT VLR_TORCH_FOUND)
        find_package(Python3 COMPONENTS Interpreter)
        if(Python3_FOUND)
            execute_process(COMMAND ${Python3_EXECUTABLE} -c
                "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                OUTPUT_VARIABLE VLR_TORCH_PYTHON OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
            if(VLR_TORCH_PYTHON)
                set(VLR_TORCH_FOUND ${VLR_TORCH_PYTHON} CACHE PATH "" FORCE)
            endif()
        endif()
    endif()
    if(NOT VLR_TORCH_FOUND)
        message(FATAL_ERROR "LibTorch is not there. Run scripts/setup.sh, or give "
            "-DTORCH_DIR=<site-packages>/torch of a torch 2.11 wheel.")
    endif()
    set(TORCH_DIR ${VLR_TORCH_FOUND})
endif()
file(STRINGS ${TORCH_DIR}/include/torch/headeronly/version.h VLR_TORCH_VERSION_LINES
    REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
string(REGEX MATCHALL "[0-9]+" VLR_TORCH_VERSION_NUMBERS "${VLR_TORCH_VERSION_LINES}")
list(JOIN VLR_TORCH_VERSION_NUMBERS "." VLR_TORCH_VERSION)

add_library(vlr_torch INTERFACE)
target_include_directories(vlr_torch SYSTEM INTERFACE
    ${TORCH_DIR}/include ${TORCH_DIR}/include/torch/csrc/api/include)
# The wheel brings its own fmt headers without their library, and c10 uses them.
target_compile_definitions(vlr_torch INTERFACE FMT_HEADER_ONLY=1)
target_link_libraries(vlr_torch INTERFACE
    -L${TORCH_DIR}/lib -Wl,--no-as-needed c10 torch_cpu -Wl,--as-needed)
target_link_options(vlr_torch INTERFACE
    -Wl,-rpath,${TORCH_DIR}/lib -Wl,--unresolved-symbols=ignore-in-shared-libs)
message(STATUS "LibTorch ${VLR_TORCH_VERSION} in ${TORCH_DIR}")
