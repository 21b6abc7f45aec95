# moegate with its kernels, for the host's GPUs:
#   docker build -t moegate .
#   docker run --rm --gpus all --cap-add SYS_ADMIN -v "$PWD:/work" moegate run --suite tiny
# SYS_ADMIN is for hardware counters alone, where the driver keeps them for administrators.
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates
COPY . /src
RUN cd /src && ci/setup && ci/setup cuda-12 && ci/release /out
RUN mkdir /cupti && cp -L /usr/local/cuda/lib64/libcupti.so.* /usr/local/cuda/lib64/libnvperf_*.so /cupti

FROM debian:12-slim
COPY --from=build /out /out
COPY --from=build /cupti /usr/local/cuda/lib64
RUN apt-get update && apt-get install -y --no-install-recommends /out/*.deb python3-numpy libpython3.11 \
  && rm -rf /var/lib/apt/lists/* /out
WORKDIR /work
ENTRYPOINT ["moegate"]
