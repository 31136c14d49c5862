-- What people of Torch7 and PyTorch look for and a compiled graph has no place for: each name raises an error that says
-- what to write instead.
local torch = { methods = {}, modules = {} }

local STEP = "modules describe a graph, which runs as a whole: make nn.Trainer { model =, criterion =, " ..
  "input = { dims... }, optim = optim.sgd { learningRate = } } and call :step(input, target), which goes forward " ..
  "and backward and updates"
local PREDICT = "; :forward(input) of the trainer is the model's output"
local HOLDS = "modules hold no numbers; "
local NUMBERS = HOLDS .. "nn.Trainer's :parameters(true) has names, shapes and numbers, and its " ..
  "session:write(name, numbers) sets them"
local TYPE = "the type computed in is the plan's (plan = { amp = \"bf16\" } of nn.Trainer), the device is its " ..
  "(device = cairn.device(\"cuda:0\"))"

-- Methods of nn.Module.
for name, remedy in pairs {
  forward = STEP .. PREDICT, updateOutput = STEP .. PREDICT,
  backward = STEP, updateGradInput = STEP, accGradParameters = STEP, updateParameters = STEP,
  zeroGradParameters = "gradients are zero at the start of each step; accumulate = K of optim.* sums those of K " ..
    "micro-batches",
  parameters = NUMBERS, getParameters = NUMBERS,
  reset = HOLDS .. "the session's :initialise(seed) starts them again",
  share = "one module that is added twice has one set of parameters",
  type = TYPE, float = TYPE, double = TYPE, half = TYPE, cuda = TYPE, cl = TYPE,
  clearState = HOLDS .. "what a step takes is the plan's, and is given back by nn.Trainer's :free()",
} do
  torch.methods[name] = function(self)
    error(("nn.%s:%s: %s"):format(type(self) == "table" and self.kind or "Module", name, remedy), 2)
  end
end

-- Modules and criterions.
local OWN = "; nn.define makes a module of ops of the graph (cairn.ops())"
for name, remedy in pairs {
  LookupTable = "nn.Embedding(vocabulary, width), whose ids count from 0",
  Reshape = "nn.View(dims...)",
  ClassNLLCriterion = "nn.CrossEntropyCriterion(), on logits; targets count from 0, and -100 is left out",
  LogSoftMax = "nn.CrossEntropyCriterion(), which is on logits",
  BCECriterion = "nn.CrossEntropyCriterion() on two logits",
  Swish = "nn.SiLU()",
  Softplus = "nn.SoftPlus()", Square = "nn.Power(2)",
  HardTanh = "nn.Clamp(-1, 1)", Hardtanh = "nn.Clamp(-1, 1)", ReLU6 = "nn.Clamp(0, 6)",
  MM = "context:op(\"matmul\", a, b) in a module of nn.define",
  BatchMM = "context:op(\"matmul\", a, b) in a module of nn.define",
  BatchNorm1d = "nn.BatchNorm(channels)", BatchNorm2d = "nn.BatchNorm(channels)",
  Conv3d = "there are convolutions of one and two spatial axes alone: nn.Conv1d, nn.Conv2d",
  TemporalMaxPooling = "nn.MaxPool2d(window), which takes sequences, too",
  Flatten = "nn.View(dims...)", InstanceNorm2d = "nn.GroupNorm(channels, channels)",
  SpatialUpSamplingNearest = "nn.Upsample { scale = factor }",
  SpatialUpSamplingBilinear = "nn.Upsample({ scale = factor }, \"bilinear\")",
  TripletMarginLoss = "nn.TripletCriterion(margin), by products of pairs", Normalize = "nn.L2Normalize()",
  MSELoss = "nn.MSECriterion()",
  CrossEntropyLoss = "nn.CrossEntropyCriterion()",
  MultiheadAttention = "nn.MultiHeadAttention(width, heads), of x[batch, time, width] with itself",
  TransformerEncoderLayer = "nn.Block(width, heads)" .. OWN,
  Parallel = "modules of one input each" .. OWN,
  StochasticGradient = "nn.Trainer",
} do
  torch.modules[name] = remedy
end

return torch
