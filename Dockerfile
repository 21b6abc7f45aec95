# moegate with its kernels, for the host's GPUs:
#   docker build -t moegate .
#   docker run --rm --gpus all --cap-add SYS_ADMIN -v "$PWD:/work" moegate run --suite tiny
# SYS_ADMIN is for hardware counters alone, where the driver keeps them for administrators.
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates
COPY . /src
RUN cd /src && ci/setup && ci/setup cuda && ci/release /out

FROM debian:12-slim
COPY --from=build /out /out
COPY --from=build /usr/local/cuda/extras/CUPTI/lib64 /usr/local/cuda/extras/CUPTI/lib64
RUN apt-get update && apt-get install -y --no-install-recommends /out/*.deb python3-numpy \
  && rm -rf /var/lib/apt/lists/* /out
WORKDIR /work
ENTRYPOINT ["moegate"]
