# The `cairn` command in a container: built from this folder with Debian's packages, and installed from the packages that this makes.
#
#   docker build -t cairn .
#   docker run --rm -v "$PWD":/data cairn train gpt2 data=book.txt --out run
#
# What a container may take of memory is a limit that cairn reads; `cairn devices` names it.
FROM debian:12-slim AS build
COPY . /src
WORKDIR /src
RUN ./dev package

FROM debian:12-slim
COPY --from=build /src/build/packages/ /packages/
RUN apt-get update \
 && apt-get install -y --no-install-recommends /packages/libcairn1_*.deb /packages/cairn_*.deb \
 && rm -rf /packages /var/lib/apt/lists/*
# The user's folder goes here: checkpoints and reports are written into it.
WORKDIR /data
ENTRYPOINT ["cairn"]
