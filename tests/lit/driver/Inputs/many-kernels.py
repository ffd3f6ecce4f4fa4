"""A module with so many different kernels, k0, k1, ..., and two fusions more that equal the first: many-kernels.py COUNT."""
import sys

count = int(sys.argv[1])
numbers = list(range(count)) + [0, 0]
print("HloModule many")
for i, n in enumerate(numbers):
    print(f"c{i} {{ x{i} = f32[{1000 + n}] parameter(0)\n  ROOT r{i} = f32[{1000 + n}] negate(x{i}) }}")
print("ENTRY e {")
for i, n in enumerate(numbers):
    print(f"  p{i} = f32[{1000 + n}] parameter({i})\n  k{i} = f32[{1000 + n}] fusion(p{i}), kind=kLoop, calls=c{i}")
shapes = ", ".join(f"f32[{1000 + n}]" for n in numbers)
print(f"  ROOT t = ({shapes}) tuple({', '.join(f'k{i}' for i in range(len(numbers)))})\n}}")
