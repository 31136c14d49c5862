#!/usr/bin/env python3
"""convolutions.py BENCH_CONVOLUTIONS [f32|bf16]: each layer of bench_convolutions in turns with PyTorch's channels-last
convolution, on one thread, by its processor time: the best of three runs, the median of three turns. Prints milliseconds
of cairn / PyTorch for forward, gradient of the input, gradient of the weight."""
import json
import subprocess
import sys
import time

import torch
import torch.nn.functional as F


def best(run, repeats=3):
    run()
    seconds = []
    for _ in range(repeats):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    return min(seconds) * 1e3


def peer(layer, dtype):
    def picture(*shape):
        return torch.randn(*shape, dtype=dtype).to(memory_format=torch.channels_last)

    kernel, stride, size, groups = (layer[key] for key in ("kernel", "stride", "size", "groups"))
    padding = 0 if kernel == stride else kernel // 2
    x = picture(16, layer["inputs"], size, size)
    w = picture(layer["outputs"], layer["inputs"] // groups, kernel, kernel)
    y = F.conv2d(x, w, None, stride, padding, 1, groups)
    dy = picture(*y.shape)

    def back(mask):
        return torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0],
                                                   groups, mask)

    return [best(lambda: F.conv2d(x, w, None, stride, padding, 1, groups)), best(lambda: back([True, False, False])),
            best(lambda: back([False, True, False]))]


def main():
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    for name in sys.argv[2:] or ["f32", "bf16"]:
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[name]
        for index in range(1, 30):
            ours, theirs = [], []
            for _ in range(3):
                command = [sys.argv[1], "--repeats=3", f"--dtype={name}", f"--layer={index}"]
                layer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                ours.append([layer["forward"], layer["input"], layer["weight"]])
                theirs.append(peer(layer, dtype))
            pairs = [(sorted(o)[1], sorted(t)[1]) for o, t in zip(zip(*ours), zip(*theirs))]
            keys = ("inputs", "outputs", "kernel", "stride", "size", "groups")
            what = " ".join(f"{key}={layer[key]}" for key in keys)
            print(name, what, *(f"{o:.2f}/{t:.2f}" for o, t in pairs), flush=True)


if __name__ == "__main__":
    main()
